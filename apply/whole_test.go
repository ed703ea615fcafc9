package apply_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"deployer/apply/compare"
)

// twoNames has two names for one port, as charts have that probe one and
// route to the other.
var twoNames = strings.Replace(small, "ports: [{name: http, containerPort: 8080}]",
	"ports: [{name: http, containerPort: 8080}, {name: metrics, containerPort: 8080}]", 1)

func (s *story) ports() string {
	return fmt.Sprint(at(s.get("apps/v1", "Deployment", "web"), "spec.template.spec.containers.app.ports"))
}

const (
	bothPorts = "[map[containerPort:8080 name:http protocol:TCP] map[containerPort:8080 name:metrics protocol:TCP]]"
	onePort   = "[map[containerPort:8080 name:http protocol:TCP]]"
)

// A chart with two names for one port deploys, is a no-op when repeated, changes, and comes back
// to being applied when the chart mends its ports.
func TestTwoNamesForOnePort(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"us", "Helm 3", "us, with one port"} {
		t.Run(first, func(t *testing.T) {
			s := begin(t)
			switch first {
			case "Helm 3":
				s.helm3Install(twoNames)
				s.record("deployed", twoNames)
			case "us, with one port":
				s.deploy(small)
				s.deploy(twoNames)
			default:
				p := s.deploy(twoNames)
				if !strings.Contains(warnings(p), "two different items have containerPort=8080,protocol=\"TCP\": server-side apply doesn't allow that") {
					t.Errorf("warnings: %s", warnings(p))
				}
				if c := change(t, p, "Deployment", "web"); !strings.HasPrefix(c.Reason, "replaced as a whole: ") || c.Applied == nil {
					t.Errorf("%+v", c)
				}
			}
			if s.ports() != bothPorts {
				t.Fatalf("ports: %s", s.ports())
			}
			generation := s.generation("apps/v1", "Deployment", "web")
			s.expect(s.deploy(twoNames))
			s.expect(s.deploy(twoNames))
			if s.generation("apps/v1", "Deployment", "web") != generation {
				t.Errorf("it has been rolled out again")
			}
			// Other people's fields stay, dropped ones go.
			s.patch("apps/v1", "Deployment", "web", types.StrategicMergePatchType,
				`{"metadata":{"labels":{"mine":"x"}},"spec":{"template":{"spec":{"containers":[{"name":"side","image":"s:1"}]}}}}`, "somebody")
			next := strings.Replace(twoNames, `env: [{name: A, value: "1"}]`, `env: [{name: B, value: "1"}]`, 1)
			p := s.deploy(next)
			s.expect(p, "update Deployment/web")
			if got := removed(change(t, p, "Deployment", "web")); len(got) != 1 || got[0].String() != `spec.template.spec.containers[name="app"].env[name="A"]` {
				t.Errorf("removed: %v", got)
			}
			d := s.get("apps/v1", "Deployment", "web")
			if got := names(at(d, "spec.template.spec.containers.app.env")); got != "B" {
				t.Errorf("env: %s", got)
			}
			if got := names(at(d, "spec.template.spec.containers")); got != "app side" && got != "side app" || at(d, "metadata.labels.mine") != "x" || s.ports() != bothPorts {
				t.Errorf("containers %s, ports %s, labels %v", got, s.ports(), d.GetLabels())
			}
			s.expect(s.deploy(next))
			s.deploy(small)
			if s.ports() != onePort {
				t.Errorf("ports: %s", s.ports())
			}
			s.expect(s.deploy(small))
			s.deploy(twoNames)
			s.expect(s.deploy(""), "delete ConfigMap/conf", "delete Deployment/web", "delete Service/web")
		})
	}
}

// A race between plan and write is a conflict, and decided again.
func TestWrittenWholeIsGuarded(t *testing.T) {
	s := begin(t)
	s.deploy(twoNames)
	p := s.plan(strings.Replace(twoNames, "nginx:1", "nginx:2", 1))
	s.patch("apps/v1", "Deployment", "web", types.MergePatchType, `{"metadata":{"labels":{"raced":"x"}}}`, "somebody")
	s.run(p)
	d := s.get("apps/v1", "Deployment", "web")
	if d.GetLabels()["raced"] != "x" || at(d, "spec.template.spec.containers.app.image") != "nginx:2" {
		t.Errorf("labels %v, image %v", d.GetLabels(), at(d, "spec.template.spec.containers.app.image"))
	}
	// What the server won't have by POST either is rejected beforehand.
	err := s.refuse(strings.Replace(small, "ports: [{port: 80, targetPort: http}]", "ports: [{name: a, port: 80}, {name: b, port: 80}]", 1))
	if !strings.Contains(err.Error(), "Duplicate value") {
		t.Errorf("got %v", err)
	}
	// A selector can't be changed: made anew, whole.
	s.opts.AllowRecreate = true
	s.record("deployed", twoNames)
	s.expect(s.deploy(strings.ReplaceAll(twoNames, "{app: web}", "{app: other}")), "recreate Deployment/web", "update Service/web")
	if s.ports() != bothPorts {
		t.Errorf("ports: %s", s.ports())
	}
}

// A variable that is set twice and used in between means something to the
// kubelet, which reads the list from the top.
func TestVariableUsedBetweenTwoSettings(t *testing.T) {
	s := begin(t)
	chart := strings.Replace(small, `env: [{name: A, value: "1"}]`, `env: [{name: A, value: "1"}, {name: B, value: "$(A)"}, {name: A, value: "2"}]`, 1)
	s.deploy(chart)
	s.expect(s.deploy(chart))
	if got := names(at(s.get("apps/v1", "Deployment", "web"), "spec.template.spec.containers.app.env")); got != "A B A" {
		t.Errorf("env: %s", got)
	}
	s.deploy(small)
	if got := names(at(s.get("apps/v1", "Deployment", "web"), "spec.template.spec.containers.app.env")); got != "A" {
		t.Errorf("env: %s", got)
	}
}

// What the server wouldn't accept of an object that is written whole is compared without it.
func TestInspectionOfTwoNamesForOnePort(t *testing.T) {
	s := begin(t)
	s.deploy(twoNames)
	if err := s.client("apps/v1", "Deployment").Delete(bg, "web", deleteNow); err != nil {
		t.Fatal(err)
	}
	other := strings.NewReplacer("{matchLabels: {app: web}}", "{matchLabels: {app: web, old: web}}", "metadata: {labels: {app: web}}", "metadata: {labels: {app: web, old: web}}").Replace(twoNames)
	s.post(s.owned(s.manifests(other)[2].Object), "somebody")
	inspection, err := s.applier().Inspect(bg, s.request(twoNames))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := inspection.All(bg)
	if err != nil {
		t.Fatal(err)
	}
	o := objects[2]
	differs := func(path string) bool {
		return slices.ContainsFunc(o.Fields, func(f compare.FieldChange) bool { return f.String() == path })
	}
	if o.ID.Kind != "Deployment" || o.Rejected != nil || o.Predicted == nil || !differs("spec.selector") || differs("spec.template.spec.containers[name=\"app\"].ports") {
		t.Errorf("%s: rejected %v, fields %v", o.ID, o.Rejected, o.Fields)
	}
}
