package apply_test

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/apply/provenance"
	"deployer/internal/kubetest"
)

const small = `
apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data: {a: "1", b: "2"}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{port: 80, targetPort: http}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: app
        image: nginx:1
        ports: [{name: http, containerPort: 8080}]
        env: [{name: A, value: "1"}]
`

func TestInstallAndUpgrade(t *testing.T) {
	s := begin(t)
	p := s.plan(small)
	s.expect(p, "create ConfigMap/conf", "create Service/web", "create Deployment/web")
	if w := kubetest.Writes(s.c.Audit(t, s.agent)); len(w) > 0 {
		t.Errorf("planning wrote: %v", w)
	}
	for _, wave := range p.Waves {
		for _, c := range wave.Changes {
			if c.Predicted == nil || c.Unverified != "" {
				t.Errorf("%s was not dry-run: %q", c.ID, c.Unverified)
			}
		}
	}
	s.run(p)
	s.record("deployed", small)
	if got := managers(s.get("v1", "ConfigMap", "conf")); got != "helm/Apply" {
		t.Errorf("managers of the ConfigMap: %s", got)
	}

	before := len(s.c.Audit(t, s.agent))
	s.expect(s.deploy(small))
	if asked := s.c.Audit(t, s.agent)[before:]; len(asked) > 6 {
		t.Errorf("a release that changes nothing took %d requests: %v", len(asked), asked)
	}

	second := strings.Replace(strings.Replace(small, `, b: "2"`, "", 1), "nginx:1", "nginx:2", 1)
	s.expect(s.deploy(second), "update ConfigMap/conf", "update Deployment/web")
	if got := s.get("v1", "ConfigMap", "conf"); at(got, "data.b") != nil || at(got, "data.a") != "1" {
		t.Errorf("data: %v", got.Object["data"])
	}
	if got := at(s.get("apps/v1", "Deployment", "web"), "spec.template.spec.containers.app.image"); got != "nginx:2" {
		t.Errorf("image: %v", got)
	}

	third := second[:strings.LastIndex(second, "---")]
	s.expect(s.deploy(third), "delete Deployment/web")
	if s.get("apps/v1", "Deployment", "web") != nil {
		t.Errorf("the Deployment is still there")
	}

	s.opts.PruneKinds = []string{"PersistentVolumeClaim"}
	s.expect(s.deploy(""), "delete ConfigMap/conf", "delete Service/web")
}

// An object that has no room left for our annotations is told with the others, before the first change.
func TestEverythingRejectedIsReportedBeforeAnythingChanges(t *testing.T) {
	s := begin(t)
	full := "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: full, annotations: {a: " + strings.Repeat("x", 256<<10-1) + "}}\n"
	s.post(s.manifests(strings.Replace(full, "full", "alone", 1))[0].Object, "x") // it is our addition that unexpected argument
	err := s.refuse(small + full + `
---
apiVersion: v1
kind: ConfigMap
metadata: {name: Not A Name}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: broken}
spec:
  selector: {matchLabels: {app: x}}
  template:
    metadata: {labels: {app: y}}
    spec: {containers: [{name: app, image: x}]}
---
apiVersion: example.com/v1
kind: Nowhere
metadata: {name: x}
`)
	var rejected *apply.RejectedError
	if !errors.As(err, &rejected) {
		t.Fatalf("got %T: %v", err, err)
	}
	var got []string
	for _, r := range rejected.Rejections {
		got = append(got, r.ID.Kind+"/"+r.ID.Name)
	}
	if want := "ConfigMap/Not A Name ConfigMap/full Deployment/broken Nowhere/x"; strings.Join(got, " ") != want || !strings.Contains(err.Error(), "metadata.annotations: Too long") {
		t.Errorf("rejected are %v, want %s, and annotations that are too long:\n%v", got, want, err)
	}
	if got := len(kubetest.Writes(s.c.Audit(t, s.agent))); got > 0 {
		t.Errorf("%d writes", got)
	}
}

func TestOwnership(t *testing.T) {
	s := begin(t)
	conf := s.manifests(small)[0].Object
	s.post(conf, "kubectl-create")
	err := s.refuse(small)
	var owner *apply.OwnershipError
	if !errors.As(err, &owner) || !strings.Contains(err.Error(), "invalid ownership metadata") {
		t.Fatalf("got %v", err)
	}
	t.Log(err)
	s.patch("v1", "ConfigMap", "conf", types.MergePatchType, `{"metadata":{"annotations":{"meta.helm.sh/release-name":"web"}}}`, "kubectl-annotate")
	if err = s.refuse(small); !errors.As(err, &owner) || owner.Owner != (provenance.Owner{}) {
		t.Errorf("adopted by half: %v", err)
	}
	s.opts.Adopt = []string{"configmap/conf", "conf"}
	if got := warnings(s.deploy(small)); !strings.Contains(got, "conf has no effect") || strings.Contains(got, "configmap/conf") {
		t.Errorf("warnings: %s", got)
	}

	other := begin2(s, "other")
	err = other.refuse(small)
	if !errors.As(err, &owner) || owner.Owner.Release != "web" {
		t.Fatalf("got %v", err)
	}
	other.opts.TakeOwnership = true
	other.refuse(small)
	other.opts.TakeOwnershipFrom = []string{s.ns + "/web"}
	other.deploy(small)
	s.opts.Adopt = nil
	err = s.refuse(small)
	if !errors.As(err, &owner) || owner.Owner.Release != "other" {
		t.Fatalf("got %v", err)
	}
	// What became another release's is not pruned.
	p := s.plan("")
	for _, c := range p.Prune {
		if c.Action != decide.Keep {
			t.Errorf("%s %s", c.Action, c.ID)
		}
	}
}

// begin2 is another release in the same namespace.
func begin2(s *story, name string) *story {
	o := *s
	o.owner.Release = name
	o.past, o.marks = nil, nil
	return &o
}

func TestGateModes(t *testing.T) {
	t.Parallel()
	broken := strings.Replace(small, "image: nginx:1", `image: ""`, 1)
	for _, gate := range []apply.Gate{apply.GateBestEffort, apply.GateOff} {
		t.Run(string(gate), func(t *testing.T) {
			s := begin(t)
			s.opts.Gate = gate
			p := s.plan(broken)
			done, err := s.tryRun(p)
			var object *apply.ObjectError
			if !errors.As(err, &object) || object.ID.Name != "web" || len(done) != 2 {
				t.Errorf("%d done, error %v", len(done), err)
			}
			s.record("failed", broken)
			s.deploy(small)
			s.refuse2(broken)
		})
	}
}

// TestGateOffMakesNoDryRuns fails if the dry runs that --gate off spares come back for objects that are
// looked for together, by a list that can't show that one of them isn't there.
func TestGateOffMakesNoDryRuns(t *testing.T) {
	s := begin(t)
	s.opts.Gate = apply.GateOff
	s.crds = definition(0, "") + definition(1, "") + definition(2, "")
	s.dropCRDs(3)
	chart := config("a") + config("b") + config("c")
	foreign := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "b"}}}
	if _, err := s.client("v1", "ConfigMap").Create(t.Context(), foreign, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var owned *apply.OwnershipError
	if err := s.refuse(chart); !errors.As(err, &owned) {
		t.Errorf("an object of somebody else: %v", err)
	}
	chart = config("a") + config("c") + config("d")
	for _, e := range s.requests("", func() { s.deploy(chart) }) {
		if e.DryRun() {
			t.Errorf("a dry run: %v", e)
		}
	}
	s.expect(s.plan(chart))
}

// refuse2 wants the failure from the plan or from carrying it out.
func (s *story) refuse2(chart string) {
	s.t.Helper()
	p, err := s.tryPlan(s.request(chart))
	if err == nil {
		_, err = s.tryRun(p)
	}
	if err == nil {
		s.t.Errorf("it worked")
	}
}

// The namespace comes with the release, or is missing.
func TestNamespaceComesWithTheRelease(t *testing.T) {
	s := begin(t)
	t.Cleanup(func() { s.client("v1", "Namespace").Delete(bg, s.ns+"-new", deleteNow) })
	inside := strings.Replace(config("c"), "metadata: {name: c}", "metadata: {name: c, namespace: NS-new}", 1)
	err := s.refuse(inside)
	t.Log(err)
	chart := "\napiVersion: v1\nkind: Namespace\nmetadata: {name: NS-new}\n" + inside
	p := s.plan(chart)
	for c := range p.Changes() {
		if c.ID.Kind == "ConfigMap" && !strings.Contains(c.Unverified, "comes with this release") {
			t.Errorf("%+v", c)
		}
	}
	s.deploy(chart)
	s.expect(s.deploy(chart))
	p = s.plan("")
	for _, c := range p.Prune {
		if c.ID.Kind == "Namespace" && c.Action != decide.Keep {
			t.Errorf("%s %s", c.Action, c.ID)
		}
	}
}

// A dry run isn't needed to see what somebody else already made so.
func TestMarksProveNothingAfterOthersWrote(t *testing.T) {
	s := begin(t)
	s.deploy(small)
	s.patch("v1", "ConfigMap", "conf", "application/merge-patch+json", `{"data":{"a":"9"}}`, "kubectl-edit")
	s.expect(s.deploy(small), "update ConfigMap/conf")
	s.patch("v1", "ConfigMap", "conf", "application/merge-patch+json", `{"metadata":{"annotations":{"meta.helm.sh/release-name":"b"}}}`, "x")
	s.refuse(small)
}
