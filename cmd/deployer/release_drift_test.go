package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"deployer/internal/kubetest"
)

// driftTemplates are a release in which everything can happen.
var driftTemplates = map[string]string{
	"gone.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: gone}\ndata: {a: b}\n",
	"job.yaml": `
apiVersion: batch/v1
kind: Job
metadata: {name: done}
spec:
  ttlSecondsAfterFinished: 3600
  template: {spec: {restartPolicy: Never, containers: [{name: app, image: nginx}]}}
`,
	"scaled.yaml": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: scaled}
spec:
  replicas: 1
  selector: {matchLabels: {app: scaled}}
  template:
    metadata: {labels: {app: scaled}}
    spec: {containers: [{name: app, image: nginx}]}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: scaled}
spec: {minReplicas: 1, maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: scaled}}
`,
	"failed.yaml": `
{{- if .Values.fail }}
apiVersion: v1
kind: ConfigMap
metadata: {name: leftover}
data: {a: b}
---
apiVersion: batch/v1
kind: Job
metadata: {name: bad, annotations: {helm.sh/hook: post-upgrade}}
spec:
  backoffLimit: 0
  template:
    metadata: {annotations: {sim.deployer/steps: '[{"phase":"Failed","after":"0s"}]'}}
    spec: {restartPolicy: Never, containers: [{name: app, image: nginx}]}
{{- end }}
`,
}

func newDrift(t *testing.T) *plans {
	p := newPlans(t)
	for name, text := range driftTemplates {
		p.write("templates/"+name, text)
	}
	return p
}

// A driftLine is one difference of a drift.
type driftLine struct{ object, origin, path, by string }

// driftOf reads a drift as JSON, as one line a difference.
func (p *plans) driftOf(code int, args ...string) []driftLine {
	p.t.Helper()
	var d struct {
		HasDrift bool `json:"has_drift"`
		Objects  []struct {
			Object, State, Origin string
			Expected              bool
			By                    struct{ Manager, Subresource string }
			Fields                []struct {
				Path     string
				Expected bool
			}
		}
	}
	out := p.run(code, append([]string{"plan", "web", "--drift", "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		p.t.Fatalf("%v:\n%s", err, out)
	}
	if d.HasDrift != (code == 2) {
		p.t.Errorf("has_drift is %v and the exit code %d:\n%s", d.HasDrift, code, out)
	}
	var lines []driftLine
	for _, o := range d.Objects {
		name := strings.ReplaceAll(o.Object, "/"+p.ns+"/", "/")
		mark := func(expected bool) string {
			if expected {
				return " (expected)"
			}
			return ""
		}
		if o.State != "changed" {
			lines = append(lines, driftLine{name, o.Origin, o.State + mark(o.Expected), ""})
		}
		for _, f := range o.Fields {
			lines = append(lines, driftLine{name, o.Origin, f.Path + mark(f.Expected), o.By.Manager})
		}
	}
	return lines
}

func (p *plans) wantDrift(got []driftLine, want ...driftLine) {
	p.t.Helper()
	left := map[driftLine]bool{}
	for _, w := range want {
		left[w] = true
	}
	for _, g := range got {
		if !left[g] {
			p.t.Errorf("unexpected: %+v", g)
		}
		delete(left, g)
	}
	for w := range left {
		p.t.Errorf("missing: %+v", w)
	}
}

// Each difference is told of once, with who is behind it; the exit code says
// whether any of it matters.
func TestDrift(t *testing.T) {
	t.Parallel()
	p := newDrift(t)
	p.upgrade("password=planted-secret-1")
	p.wantDrift(p.driftOf(0))
	mustHave(t, p.run(0, "plan", "web", "--drift"), "No drift. 8 objects as deployed.")

	p.patch("deployments", "scaled", `{"spec":{"replicas":5}}`, "kube-controller-manager", "scale")
	p.patch("deployments", "scaled", `{"metadata":{"annotations":{"operator.example.com/seen":"yes"}}}`, "some-operator")
	restart := `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-01-01T00:00:00Z"}}}}}`
	p.patch("deployments", "web", restart, "kubectl-rollout")
	left := []driftLine{
		{"Deployment/scaled", "controller", "spec.replicas (expected)", "HorizontalPodAutoscaler/scaled"},
		{"Deployment/scaled", "controller", `metadata.annotations."operator.example.com/seen" (expected)`, "some-operator"},
		{"Deployment/web", "manual", `spec.template.metadata.annotations (expected)`, "kubectl-rollout"},
	}
	p.wantDrift(p.driftOf(0), left...)

	p.patch("configmaps", "conf", `{"data":{"colour":"pink","big":null}}`, "kubectl-edit")
	p.patch("deployments", "web", `{"spec":{"replicas":4}}`, "kubectl", "scale")
	p.patchStrategic("deployments", "web", `{"spec":{"template":{"spec":{"containers":[{"name":"debug","image":"busybox"}]}}}}`, "k9s")
	p.patchStrategic("deployments", "web", `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"nginx:9"}]}}}}`, "image-operator")
	p.patch("secrets", "db", `{"stringData":{"password":"planted-secret-2"}}`, "kubectl-patch")
	p.patch("configmaps", "old", `{"metadata":{"annotations":{"meta.helm.sh/release-name":"other"}}}`, "helm")
	p.remove("configmaps", "gone")
	drifted := append(left,
		driftLine{"ConfigMap/conf", "manual", "data.colour", "kubectl-edit"},
		driftLine{"ConfigMap/conf", "manual", "data.big", ""},
		driftLine{"Deployment/web", "manual", "spec.replicas", "kubectl"},
		driftLine{"Deployment/web", "manual", `spec.template.spec.containers[name="debug"]`, "k9s"},
		driftLine{"Deployment/web", "controller", `spec.template.spec.containers[name="app"].image`, "image-operator"},
		driftLine{"Secret/db", "manual", "data.password", "kubectl-patch"},
		driftLine{"ConfigMap/old", "other_release", "taken", ""},
		driftLine{"ConfigMap/gone", "deleted", "missing", ""},
	)
	p.wantDrift(p.driftOf(2), drifted...)
	p.wantDrift(p.driftOf(2, "--detailed-exitcode"), drifted...)
	for _, format := range []string{"text", "json", "yaml", "markdown", "html"} {
		out := p.run(2, "plan", "web", "--drift", "-o", format)
		mustHave(t, out, "kubectl-edit", "image-operator", "pink")
		if strings.Contains(out, "planted-secret") || strings.Contains(out, "cGxhbnRlZC1zZWNyZXQt") {
			t.Errorf("%s shows a value of a Secret:\n%s", format, out)
		}
	}
	if out := p.run(0, "plan", "web", "--drift", "--detailed-exitcode=false"); !strings.Contains(out, "Manual edits") {
		t.Errorf("no drift:\n%s", out)
	}
	p.driftReadsOnly(drifted)
}

// driftReadsOnly compares as an administrator, and as somebody who may only
// read: both see the same, and nobody writes.
func (p *plans) driftReadsOnly(want []driftLine) {
	p.t.Helper()
	for _, verbs := range []string{"get,list", "get,list,patch,create"} {
		user := p.cluster.User(p.t, p.ns, kubetest.Rule("", verbs, "configmaps", "secrets", "services"),
			kubetest.Rule("apps", verbs, "deployments"), kubetest.Rule("batch", verbs, "jobs"), kubetest.Rule("autoscaling", verbs, "horizontalpodautoscalers"))
		q := *p
		q.config = user.Kubeconfig(p.t, p.ns)
		from := len(p.cluster.Audit(p.t, user.Name))
		q.wantDrift(q.driftOf(2), want...)
		for _, e := range kubetest.Writes(p.cluster.Audit(p.t, user.Name)[from:]) {
			p.t.Errorf("%s: written: %s", verbs, e)
		}
	}
	blind := p.cluster.User(p.t, p.ns, kubetest.Rule("", "get,list", "secrets"))
	q := *p
	q.config = blind.Kubeconfig(p.t, p.ns)
	if out := q.run(2, "plan", "web", "--drift"); !strings.Contains(out, "Unknown") {
		p.t.Errorf("what can't be read is not told of:\n%s", out)
	}
}

func (p *plans) patchStrategic(resource, name, patch, manager string) {
	p.t.Helper()
	_, err := p.client(resource).Patch(context.Background(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: manager})
	if err != nil {
		p.t.Fatal(err)
	}
}

// What a failed release has changed is told apart from manual edits, and
// nothing can be said of a release that was never deployed.
func TestDriftOfFailedReleases(t *testing.T) {
	t.Parallel()
	p := newDrift(t)
	p.run(1, "plan", "web", "--drift")
	p.upgrade()
	p.run(1, "upgrade", "web", p.chart, "--wait=false", "--set", "fail=true,image=nginx:2,colour=blue")
	p.patch("configmaps", "conf", `{"data":{"size":"7"}}`, "kubectl-edit")
	p.wantDrift(p.driftOf(2),
		driftLine{"ConfigMap/leftover", "failed_release", "extra", ""},
		driftLine{"Job/bad", "failed_release", "extra", ""},
		driftLine{"Deployment/web", "failed_release", `spec.template.spec.containers[name="app"].image`, "helm"},
		driftLine{"Deployment/web", "failed_release", `spec.template.spec.containers[name="app"].env[name="COLOUR"].value`, "helm"},
		driftLine{"ConfigMap/conf", "failed_release", "data.colour", "helm"},
		driftLine{"ConfigMap/conf", "manual", "data.size", "kubectl-edit"},
	)
	mustHave(t, p.run(2, "plan", "web", "--drift"), "Drift of web in "+p.ns+" from revision 1, chart web-1.0.0, context ", " (revision 2 is failed)\n", "(from revision 2)")
}

// A variable may refer to those before it, so their order matters, and the next
// upgrade puts it right.
func TestDriftOfTheOrderOfVariables(t *testing.T) {
	t.Parallel()
	p := newPlans(t)
	p.write("templates/order.yaml", `
apiVersion: apps/v1
kind: Deployment
metadata: {name: order}
spec:
  selector: {matchLabels: {app: order}}
  template:
    metadata: {labels: {app: order}}
    spec: {containers: [{name: app, image: nginx, env: [{name: A, value: x}, {name: B, value: $(A)}]}]}
`)
	p.upgrade()
	p.patch("deployments", "order", `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"nginx",
		"env":[{"name":"B","value":"$(A)"},{"name":"A","value":"x"}]}]}}}}`, "kubectl-edit")
	const env = `spec.template.spec.containers[name="app"].env`
	p.wantDrift(p.driftOf(2), driftLine{"Deployment/order", "manual", env, ""}) // whoever changes an order owns nothing by that
	mustHave(t, p.run(2, "plan", "web", "--drift"), "changed, manager unknown")
	mustHave(t, p.run(0, "plan", "web", p.chart), env+`: ["name=\"B\"","name=\"A\""] -> ["name=\"A\"","name=\"B\""]`)
}

// TestMadeWithDefaults: whoever has made what a release adopts owns the defaults of the API server too, which nobody has added.
func TestMadeWithDefaults(t *testing.T) {
	t.Parallel()
	p := newPlans(t)
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: made}\nspec: {selector: {app: made}, ports: [{port: 80}]}\n"
	p.write("templates/made.yaml", service)
	made := kubetest.Object(t, service)
	if _, err := p.client("services").Create(t.Context(), made, metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil {
		t.Fatal(err)
	}
	p.run(0, "upgrade", "--install", "web", p.chart, "--wait=false", "--take-ownership")
	p.wantDrift(p.driftOf(0))
	p.write("templates/made.yaml", strings.Replace(service, "app: made}", "app: made, more: made}", 1))
	if out := p.run(0, "plan", "web", p.chart); strings.Contains(out, "kubectl-create added") {
		t.Error(out)
	}
	p.patch("services", "made", `{"spec":{"publishNotReadyAddresses":true}}`, "kubectl-edit")
	p.wantDrift(p.driftOf(2), driftLine{"Service/made", "manual", "spec.publishNotReadyAddresses", "kubectl-edit"})
}

// Of crds/ and of hooks what the deployed revision's run has come to is compared.
// Hooks that are gone are none of it: they come and go.
func TestDriftOfDefinitionsAndHooks(t *testing.T) {
	t.Parallel()
	p := newPlans(t)
	group := "x" + p.ns + ".example.com"
	p.write("crds/thing.yaml", `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.`+group+`}
spec:
  group: `+group+`
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`)
	hook := func(name, event, value string) {
		p.write("templates/"+name+".yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+name+", annotations: {helm.sh/hook: "+event+"}}\ndata: {a: "+value+"}\n")
	}
	hook("first", "pre-install", "one")
	hook("each", "\"pre-install,pre-upgrade\"", "one")
	hook("gone", "\"post-install,post-upgrade\"", "one")
	p.upgrade()
	p.wantDrift(p.driftOf(0))
	hook("first", "pre-install", "two") // doesn't run again: nothing has applied this
	p.upgrade("colour=blue")
	p.remove("configmaps", "gone")
	p.wantDrift(p.driftOf(0))

	p.patch("configmaps", "each", `{"data":{"a":"edited"}}`, "kubectl-edit")
	definitions := p.cluster.Dynamic().Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	t.Cleanup(func() { _ = definitions.Delete(context.Background(), "things."+group, metav1.DeleteOptions{}) })
	_, err := definitions.Patch(t.Context(), "things."+group, types.MergePatchType,
		[]byte(`{"spec":{"names":{"shortNames":["th"]}}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	if err != nil {
		t.Fatal(err)
	}
	edited := driftLine{"ConfigMap/each", "manual", "data.a", "kubectl-edit"}
	p.wantDrift(p.driftOf(2), edited,
		driftLine{"CustomResourceDefinition/things." + group, "manual", "spec.names.shortNames", "kubectl-edit"})
	p.wantDrift(p.driftOf(2, "--crds", "create"), edited)
	p.wantDrift(p.driftOf(2, "--crds", "skip"), edited)
	mustHave(t, p.run(0, "explain", "web", "crd/things."+group, ".spec.names.shortNames"), "kubectl-edit (Update, since ")
	p.wantExplained("ConfigMap/each", ".data.a", "edited by kubectl-edit/Update, revision 0, taken -> one")
	if err := definitions.Delete(t.Context(), "things."+group, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.cluster.Eventually(t, time.Minute, "the definition gone", func(ctx context.Context) error {
		if _, err := definitions.Get(ctx, "things."+group, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	p.wantDrift(p.driftOf(2), edited, driftLine{"CustomResourceDefinition/things." + group, "deleted", "missing", ""})
}

// A policy by which a deployment would fail doesn't keep anybody from looking.
func TestDriftIsNotRefusedByPolicies(t *testing.T) {
	t.Parallel()
	p := newPlans(t)
	p.write("templates/strict.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: strict, annotations: {deployer.io/conflicts: fail}}\ndata: {a: b}\n")
	p.write("templates/lenient.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lenient, annotations: {deployer.io/conflicts: yield}}\ndata: {a: b}\n")
	p.upgrade()
	for _, name := range []string{"strict", "lenient"} {
		p.patch("configmaps", name, `{"data":{"a":"c"}}`, "kubectl-edit")
	}
	p.wantDrift(p.driftOf(2, "--conflicts", "fail"),
		driftLine{"ConfigMap/strict", "manual", "data.a", "kubectl-edit"},
		driftLine{"ConfigMap/lenient", "manual", "data.a (expected)", "kubectl-edit"})
	for _, args := range [][]string{{"--out", "x"}, {"--rollback"}, {"--uninstall"}, {"-o", "dot"}} {
		if out := p.run(1, append([]string{"plan", "web", "--drift"}, args...)...); strings.Contains(out, "Drift of") {
			t.Errorf("%s: %s", fmt.Sprint(args), out)
		}
	}
}
