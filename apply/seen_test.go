package apply_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"deployer/apply"
	"deployer/apply/ownership"
	"deployer/internal/kubetest"
)

// Behaviour of API servers that few expect, each seen on Kubernetes 1.37.2, and what a
// release makes of it.

// unchanged deploys a chart that changes nothing, and wants nothing written.
func (s *story) unchanged(chart string) {
	s.t.Helper()
	from := len(s.c.Audit(s.t, s.agent))
	s.expect(s.deploy(chart))
	if w := kubetest.Writes(s.c.Audit(s.t, s.agent)[from:]); len(w) > 0 {
		s.t.Errorf("with nothing to do, it wrote: %v", w)
	}
}

// An apply at a served version whose field the stored version lacks writes each time, and raises
// the generation, though nothing becomes another. That must not make a release that repeats itself
// a release that changes something.
func TestFieldThatIsNotStored(t *testing.T) {
	s := begin(t)
	s.dropCRDs(1)
	crd := definition(0, "")
	v1 := crd[strings.Index(crd, "  - name: v1"):]
	crd += strings.NewReplacer("name: v1", "name: v2", "storage: true", "storage: false", "maybe: {", "note: {type: string}\n              maybe: {").Replace(v1)
	chart := strings.Replace(foo(0, "size: 1, note: ours"), "example.com/v1", "example.com/v2", 1)
	s.deploy(crd + chart)
	apiVersion := s.ns + ".example.com/v2"
	if live := s.get(apiVersion, "Foo0", "f"); at(live, "spec.note") != nil || fmt.Sprint(at(live, "spec.size")) != "1" {
		t.Fatalf("the API server has stored the field: %v", at(live, "spec"))
	}
	was := s.generation(apiVersion, "Foo0", "f")
	s.unchanged(crd + chart)
	s.marks = nil // as after a release of Helm's
	s.unchanged(crd + chart)
	if now := s.generation(apiVersion, "Foo0", "f"); now != was {
		t.Errorf("generation %d, was %d", now, was)
	}
	next := strings.Replace(chart, "size: 1", "size: 2", 1)
	s.expect(s.deploy(crd+next), "update Foo0/f")
	if got := at(s.get(apiVersion, "Foo0", "f"), "spec.size"); fmt.Sprint(got) != "2" {
		t.Errorf("size %v", got)
	}
}

// A generation that a manifest states is stored as stated, by kinds that don't count theirs, and
// belongs to nobody.
func TestGenerationInAManifest(t *testing.T) {
	s := begin(t)
	chart := strings.Replace(config("a"), "name: a", "name: a, generation: 7, resourceVersion: '5', selfLink: /x", 1)
	s.deploy(chart)
	if got := at(s.get("v1", "ConfigMap", "a"), "metadata.generation"); got != nil {
		t.Errorf("generation %v", got)
	}
	s.unchanged(chart)
	s.unchanged(config("a"))
}

// A mutating policy runs at every apply, again for its own change, and in an order that nobody
// states. What it appends each time isn't a change of the release.
func TestPolicyThatAppends(t *testing.T) {
	s := begin(t)
	s.since("1.36", "MutatingAdmissionPolicies")
	const policy = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: NS-appends}
spec:
  reinvocationPolicy: IfNeeded
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: 'Object{data: {"seen": object.?data[?"seen"].orValue("") + "x"}}'}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: NS-appends}
spec: {policyName: NS-appends}
`
	for _, m := range s.manifests(policy) {
		kind, name := m.Object.GetKind(), m.Object.GetName()
		s.post(m.Object, "x")
		t.Cleanup(func() { s.client(admission, kind).Delete(bg, name, deleteNow) })
	}
	seen := func(name string) string { return fmt.Sprint(at(s.get("v1", "ConfigMap", name), "data.seen")) }
	n := 0
	s.eventually("the policy acts", func() error {
		n++
		name := fmt.Sprint("probe-", n)
		s.post(s.manifests(config(name))[0].Object, "x")
		if !strings.HasPrefix(seen(name), "x") {
			return fmt.Errorf("nothing was appended")
		}
		return nil
	})
	s.deploy(config("a"))
	was := seen("a")
	s.unchanged(config("a"))
	s.marks = nil
	s.unchanged(config("a"))
	if got := seen("a"); got != was {
		t.Errorf("the object has %s, had %s", got, was)
	}
}

// A field whose feature gate is off is dropped without a word, and the one who stated it is recorded
// as its owner. The plan says that the field has no effect, a release that repeats it changes
// nothing, and neither does one that drops it.
func TestFieldOfADisabledGate(t *testing.T) {
	s := begin(t)
	s.since("1.37", "the mode of an emptyDir")
	chart := func(mode string) string {
		return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, " +
			"spec: {containers: [{name: c, image: i}], volumes: [{name: v, emptyDir: {medium: Memory" + mode + "}}]}}}\n"
	}
	const mode = ", mode: 448"
	warned := func(p *apply.Plan) {
		t.Helper()
		if got := warnings(p); strings.Count(got, "emptyDir.mode") != 1 {
			t.Errorf("the plan warns of %q", got)
		}
	}
	warned(s.deploy(chart(mode)))
	live := s.get("apps/v1", "Deployment", "web")
	if owners := fmt.Sprint(live.GetManagedFields()); strings.Contains(fmt.Sprint(at(live, "spec.template.spec.volumes")), "mode") || !strings.Contains(owners, "f:mode") {
		t.Skipf("the API server no longer records an owner of a field that it drops: %s", owners)
	}
	s.unchanged(chart(mode))
	s.marks = nil
	p := s.plan(chart(mode))
	s.expect(p)
	warned(p)
	s.expect(s.deploy(chart("")))
	s.unchanged(chart(""))
}

// A conversion that loses something resets what another manager has set in the other version, when
// an object is applied in a version that doesn't show it, and no dry run tells. The plan of such an
// update says what may be lost; without a change nothing is written.
func TestLossyConversion(t *testing.T) {
	m := beginMove(t, "v1")
	chart := func(port int) string {
		return move("v1beta1", fmt.Sprintf("host: a, port: %d, backends: [bx]", port))
	}
	m.deploy(chart(80))
	theirs := strings.ReplaceAll(move("v1", `endpoints: [{name: bx, weight: 5}]`), "NS", m.ns)
	m.patch(m.ns+".example.com/v1", "Move", "m", types.ApplyPatchType, theirs, "operator")
	m.unchanged(chart(80))
	if got, want := m.spec(), "map[address:a:80 endpoints:[map[name:bx weight:5]]]"; got != want {
		t.Fatalf("it is %s, want %s", got, want)
	}
	mayLose := func(p *apply.Plan, want bool) {
		t.Helper()
		m.expect(p, "update Move/m")
		if got := warnings(p); strings.Contains(got, `operator has set spec.endpoints[name="bx"].name, spec.endpoints[name="bx"].weight of `+m.ns+".example.com/v1, which") != want {
			t.Errorf("the plan warns of %q", got)
		}
		if got := m.spec(); strings.Contains(got, "weight:5") == want {
			t.Errorf("it is %s", got)
		}
		m.patch(m.ns+".example.com/v1", "Move", "m", types.ApplyPatchType, theirs, "operator")
	}
	mayLose(m.deploy(chart(81)), true)
	mayLose(m.deploy(move("v1", `address: "a:81"`)), true) // what the chart drops is pruned in the version it had
	mayLose(m.deploy(move("v1", `address: "a:82"`)), false)
}

// Whoever patches managedFields to a list with nothing in it leaves an object without owners, and
// the API server makes up one with all fields at the next apply. What the chart drops goes all the
// same, by what the last revision stated, and what it states is its own again.
func TestManagedFieldsPatchedAway(t *testing.T) {
	s := begin(t)
	const chart = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v, l: v}\n"
	s.deploy(chart)
	s.patch("v1", "ConfigMap", "a", types.MergePatchType, `{"metadata":{"managedFields":[{}]}}`, "somebody")
	if left := s.get("v1", "ConfigMap", "a").GetManagedFields(); len(left) > 0 {
		t.Fatalf("managedFields are %v", left)
	}
	s.expect(s.deploy(chart))
	s.patch("v1", "ConfigMap", "a", types.MergePatchType, `{"metadata":{"managedFields":[{}]}}`, "somebody")
	next := strings.Replace(chart, "k: v, l: v", "k: w", 1)
	s.expect(s.deploy(next), "update ConfigMap/a")
	live := s.get("v1", "ConfigMap", "a")
	if got, want := fmt.Sprint(live.Object["data"]), "map[k:w]"; got != want {
		t.Errorf("data is %s, want %s", got, want)
	}
	if got, want := managers(live), ownership.Manager+"/Apply"; got != want {
		t.Errorf("it is owned by %s, want %s", got, want)
	}
	s.unchanged(next)
}
