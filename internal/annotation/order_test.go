package annotation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestOrderOfAnObject(t *testing.T) {
	for _, c := range []struct {
		key, value string
		want       string
	}{
		{"deployer.io/depends-on", "deployment/db", "deployment//db ready"},
		{"deployer.io/depends-on", "deployment/db, Job/other/migrate=present\n  secret/x=ready", "deployment//db ready; Job/other/migrate present; secret//x ready"},
		{"deployer.io/depends-on", "certificate.cert-manager.io/prod/tls", "certificate(cert-manager.io)/prod/tls ready"},
		{"deployer.io/depends-on", "apps/Deployment/prod/web=present", "Deployment(apps)/prod/web present"},
		{"deployer.io/depends-on", "/Service/prod/web", "Service()/prod/web ready"},
		{"deployer.io/depends-on", "rbac.authorization.k8s.io/ClusterRole//admin", "ClusterRole(rbac.authorization.k8s.io)//admin ready"},
		{"deployer.io/depends-on", "", ""},
		{"deployer.io/depends-on", "db", "! is not an object"},
		{"deployer.io/depends-on", "a/b/c/d/e", "! is not an object"},
		{"deployer.io/depends-on", "deployment//db", "! is not an object"},
		{"deployer.io/depends-on", "deployment/", "! is not an object"},
		{"deployer.io/depends-on", "deployment/db=started", "! neither ready nor present"},
		{"deployer.io/depends-on", "deployment/db=", "! neither ready nor present"},
		{"deployer.io/external-dependencies", "secret/tls=present", "secret//tls present outside"},
		{"deployer.io/weight", "-7", "weight -7"},
		{"deployer.io/weight", " 7", "! is not a whole number"},
		{"deployer.io/weight", "1.5", "! is not a whole number"},
		{"werf.io/weight", "3", "weight 3"},
		{"werf.io/weight", "", "! is not a whole number"},
		{"werf.io/deploy-dependency-db", "state=ready,kind=StatefulSet,name=postgres", "StatefulSet//postgres ready pattern"},
		{"werf.io/deploy-dependency-db", " state=present , kind=Deployment,group=apps,version=v1,name=app,namespace=app", "Deployment(apps)/app/app v1 present pattern"},
		{"werf.io/deploy-dependency-db", "state=present,name=backend", "//backend present pattern"},
		{"werf.io/deploy-dependency-db", "kind=Job,name=a", "! lacks state="},
		{"werf.io/deploy-dependency-db", "state=ready", "! names no object"},
		{"werf.io/deploy-dependency-db", "state=done,kind=Job", "! neither ready nor present"},
		{"werf.io/deploy-dependency-db", "state=ready,kid=Job", "! is none of"},
		{"db.dependency.werf.io", "state=ready,kind=Job,name=a", "Job//a ready pattern"},
		{"werf.io/external-dependency-db", "kind=Secret,name=a,namespace=b", "Secret/b/a ready outside pattern"},
		{"werf.io/external-dependency-db", "kind=Secret", "! has to be named"},
		{"db.external-dependency.werf.io", "state=present,kind=Secret,name=a", "Secret//a present outside pattern"},
		{"s.external-dependency.werf.io/resource", "secret/config", "secret//config ready outside pattern"},
		{"s.external-dependency.werf.io/resource", "deployments.v1.apps/app", "deployments(apps)//app v1 ready outside pattern"},
		{"s.external-dependency.werf.io/resource", "certificates.v1.cert-manager.io/tls", "certificates(cert-manager.io)//tls v1 ready outside pattern"},
		{"s.external-dependency.werf.io/resource", "deployments.apps/app", "deployments(apps)//app ready outside pattern"},
		{"s.external-dependency.werf.io/resource", "config", "! is not an object"},
		{"helm.sh/hook-weight", "3", ""},
	} {
		if got := text(OrderOf(map[string]string{c.key: c.value})); got != c.want && !(strings.HasPrefix(c.want, "!") && strings.Contains(got, c.want[1:])) {
			t.Errorf("%s: %q\ngot  %s\nwant %s", c.key, c.value, got, c.want)
		}
	}
}

func text(o Order) string {
	out := slices.Clone(o.Problems)
	for _, d := range o.Dependencies {
		text := d.Kind
		if d.HasGroup {
			text += "(" + d.Group + ")"
		}
		text += "/" + d.Namespace + "/" + d.Name
		for _, word := range []struct {
			text string
			said bool
		}{{d.Version, d.Version != ""}, {d.State, true}, {"outside", d.External}, {"pattern", d.IsPattern}} {
			if word.said {
				text += " " + word.text
			}
		}
		out = append(out, text)
	}
	if o.Weight != nil {
		out = append(out, fmt.Sprintf("weight %d", *o.Weight))
	}
	return strings.Join(out, "; ")
}

// Nelm ignores the weight of an object that has dependencies.
func TestWeightOfNelmYieldsToDependencies(t *testing.T) {
	for want, annotations := range map[string]map[string]string{
		"Job// ready pattern": {"werf.io/weight": "3", "werf.io/deploy-dependency-a": "state=ready,kind=Job"},
		"weight 4":            {"werf.io/weight": "3", "deployer.io/weight": "4"},
	} {
		if got := text(OrderOf(annotations)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestNelmNamespaceOfAResource(t *testing.T) {
	got := text(OrderOf(map[string]string{
		"s.external-dependency.werf.io/resource": "secret/config", "s.external-dependency.werf.io/namespace": "other",
	}))
	if want := "secret/other/config ready outside pattern"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAllMistakesOfAListAreTold(t *testing.T) {
	o := OrderOf(map[string]string{"deployer.io/depends-on": "db, job/a=done, job/b"})
	if len(o.Problems) != 2 || len(o.Dependencies) != 1 {
		t.Errorf("problems %q, dependencies %v", o.Problems, o.Dependencies)
	}
}
