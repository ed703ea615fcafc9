package apply_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"deployer/apply"
)

func config(name string) string {
	return fmt.Sprintf("\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {k: v}\n", name)
}

// What failed releases made and the next one doesn't have is deleted.
func TestLeftByFailedReleases(t *testing.T) {
	s := begin(t)
	s.deploy(config("a"))
	s.run(s.plan(config("a") + config("b")))
	s.record("failed", config("a")+config("b"))
	s.run(s.plan(config("a") + config("c")))
	s.record("failed", config("a")+config("c"))
	p := s.plan(config("a"))
	if len(p.Prune) == 1 && p.Prune[0].Reason != "left by failed revision 3" {
		t.Errorf("reason: %s", p.Prune[0].Reason)
	}
	s.expect(p, "delete ConfigMap/c")
	// The run of revision 3 has pruned b already: it was planned with revision 2 in its past.
	s.run(p)
	if s.get("v1", "ConfigMap", "b") != nil || s.get("v1", "ConfigMap", "c") != nil {
		t.Errorf("b or c is still there")
	}
}

func (s *story) reasons(p *apply.Plan) string {
	var out []string
	for _, c := range p.Prune {
		out = append(out, fmt.Sprintf("%s %s: %s", c.Action, c.ID.Name, c.Reason))
	}
	return strings.ReplaceAll(strings.Join(out, "\n"), s.ns, "NS")
}

// remembered lists what the next release is to look at again.
func (s *story) remembered() string {
	slices.Sort(s.left)
	return strings.ReplaceAll(strings.Join(s.left, " "), s.ns, "NS")
}

func TestWhatIsKept(t *testing.T) {
	s := begin(t)
	chart := config("plain") + config("kept") + config("theirs") + config("nobodys") + config("controlled") + `
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: disk}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`
	s.deploy(chart)
	note := func(name, patch string) { s.patch("v1", "ConfigMap", name, types.MergePatchType, patch, "x") }
	note("kept", `{"metadata":{"annotations":{"helm.sh/resource-policy":" Keep"}}}`)
	note("theirs", `{"metadata":{"annotations":{"meta.helm.sh/release-name":"b"}}}`)
	note("nobodys", `{"metadata":{"annotations":{"meta.helm.sh/release-name":null,"meta.helm.sh/release-namespace":null}}}`)
	note("controlled", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"kept","uid":"`+string(s.get("v1", "ConfigMap", "kept").GetUID())+`","controller":true}]}}`)
	p := s.plan(config("new"))
	want := `keep controlled: is controlled by ConfigMap/kept
keep kept: helm.sh/resource-policy: keep
keep nobodys: no longer belongs to a release
delete plain: removed from the chart
keep theirs: belongs to release NS/b now`
	got := s.reasons(p)
	for _, line := range strings.Split(want+"\nkeep disk: objects of this kind are kept unless --prune-kind names the kind", "\n") {
		if !strings.Contains(got, line) {
			t.Errorf("missing %q in\n%s", line, got)
		}
	}
	s.run(p)
	s.record("deployed", config("new"))
	if got := s.remembered(); got != "/ConfigMap/NS/controlled /PersistentVolumeClaim/NS/disk" {
		t.Errorf("remembered: %s", got)
	}
	note("controlled", `{"metadata":{"ownerReferences":null}}`)
	s.expect(s.plan(""), "delete ConfigMap/new", "delete ConfigMap/controlled", "keep PersistentVolumeClaim/disk")
	s.expect(s.deploy(config("new")), "delete ConfigMap/controlled", "keep PersistentVolumeClaim/disk")
	if got := s.remembered(); got != "/PersistentVolumeClaim/NS/disk" {
		t.Errorf("remembered: %s", got)
	}
	s.opts.PruneKinds = []string{"PersistentVolumeClaim"}
	s.expect(s.plan(config("new")), "delete PersistentVolumeClaim/disk")
	// Uninstalling deletes what the chart has, not what it once had.
	s.expect(s.plan(""), "delete ConfigMap/new", "keep PersistentVolumeClaim/disk")
	s.left = nil
	s.past[0].Objects = s.manifests(chart[strings.LastIndex(chart, "---")+4:])
	s.expect(s.plan(""), "delete PersistentVolumeClaim/disk")
}

// Prevents that a namespace or a definition that the chart dropped is deleted with objects that the chart has.
func TestNeededObjectsAreKept(t *testing.T) {
	s := begin(t)
	s.dropCRDs(1)
	s.opts.PruneKinds = []string{"Namespace", "CustomResourceDefinition"}
	const namespace, inIt = "apiVersion: v1\nkind: Namespace\nmetadata: {name: NS-b}\n---\n", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: NS-b}\n"
	s.deploy(namespace + inIt + definition(0, "") + foo(0, "size: 1"))
	s.expect(s.deploy(inIt+foo(0, "size: 1")), "keep Namespace/"+s.ns+"-b", "keep CustomResourceDefinition/foos0."+s.ns+".example.com")
	s.expect(s.plan("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}"), "create ConfigMap/c", "delete ConfigMap/a", "delete Foo0/f",
		"delete Namespace/"+s.ns+"-b", "delete CustomResourceDefinition/foos0."+s.ns+".example.com")
}

// The namespace that has the records isn't deleted with the release, nor by
// one that drops it, even if such deletions are asked for.
func TestOwnNamespaceIsKept(t *testing.T) {
	s := begin(t)
	s.opts.TakeOwnership = true
	s.opts.PruneKinds = []string{"Namespace"}
	s.deploy("apiVersion: v1\nkind: Namespace\nmetadata: {name: NS}\n---" + config("a"))
	for _, next := range []string{config("a"), ""} {
		if got := s.reasons(s.plan(next)); !strings.Contains(got, "keep NS: it holds the release records") {
			t.Errorf("deletions: %s", got)
		}
	}
}

// A misspelt policy is told, and costs nothing its life.
func TestOddPolicies(t *testing.T) {
	s := begin(t)
	with := func(name, policy string) string {
		return strings.Replace(config(name), "{name: "+name+"}", "{name: "+name+", annotations: {helm.sh/resource-policy: "+policy+"}}", 1)
	}
	chart := with("kept", "'KEEP '") + with("odd", "keeep") + with("gone", "delete")
	p := s.deploy(chart)
	if got := warnings(p); strings.Count(got, "\n") > 0 || !strings.Contains(got, `"keeep", which is not a known policy`) {
		t.Errorf("warnings: %s", got)
	}
	s.expect(s.plan(config("new")), "create ConfigMap/new", "delete ConfigMap/gone", "keep ConfigMap/kept", "keep ConfigMap/odd")
	s.expect(s.plan(""), "delete ConfigMap/gone", "keep ConfigMap/kept", "keep ConfigMap/odd")
}

// A candidate that became another object between plan and deletion stays.
func TestDeletionIsGuarded(t *testing.T) {
	s := begin(t)
	s.deploy(config("a") + config("b") + config("c"))
	p := s.plan("")
	// b changes hands, c is another object, a gets a label: it still goes.
	s.patch("v1", "ConfigMap", "b", types.MergePatchType, `{"metadata":{"annotations":{"meta.helm.sh/release-name":"other"}}}`, "x")
	s.patch("v1", "ConfigMap", "a", types.MergePatchType, `{"metadata":{"labels":{"x":"y"}}}`, "x")
	if err := s.client("v1", "ConfigMap").Delete(bg, "c", deleteNow); err != nil {
		t.Fatal(err)
	}
	s.post(s.manifests(config("c"))[0].Object, "x")
	s.run(p)
	if s.get("v1", "ConfigMap", "a") != nil || s.get("v1", "ConfigMap", "b") == nil || s.get("v1", "ConfigMap", "c") == nil {
		t.Errorf("a %v, b %v, c %v", s.get("v1", "ConfigMap", "a") != nil, s.get("v1", "ConfigMap", "b") != nil, s.get("v1", "ConfigMap", "c") != nil)
	}
}

// A stored revision with a kind that is gone stops nothing.
func TestRemovedKindsInThePast(t *testing.T) {
	s := begin(t)
	s.deploy(config("a"))
	s.past[0].Objects = append(s.past[0].Objects, s.manifests(`
apiVersion: policy/v1beta1
kind: PodSecurityPolicy
metadata: {name: x}
---
apiVersion: extensions/v1beta1
kind: Ingress
metadata: {name: web}
spec: {backend: {serviceName: web, servicePort: 80}}
`)...)
	s.expect(s.plan(config("a")))
	ingress := "\n---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web}\nspec: {defaultBackend: {service: {name: web, port: {number: 80}}}}\n"
	s.helm3Install(ingress)
	s.expect(s.plan(config("a")+ingress), "") // neither created nor deleted
	s.expect(s.plan(config("a")), "delete Ingress/web")
}

func TestTwiceInOneRelease(t *testing.T) {
	s := begin(t)
	refused := s.refuse(config("a") + config("a"))
	if !strings.Contains(refused.Error(), "is rendered twice, here and in web/templates/1.yaml") {
		t.Errorf("got %v", refused)
	}
	s.hooks = strings.Replace(config("a"), "name: a", `annotations: {"helm.sh/hook": pre-install}, name: a`, 1)
	req := s.request(config("a"))
	req.PreHooks = 1
	p, err := s.tryPlan(req)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Waves) != 1 || p.Waves[0].Changes[0].Unverified != "a hook of the same name runs first" {
		t.Errorf("the object isn't decided about after the hook: %s", summary(p))
	}
}

// Changes made one after the other are told in turn, and the rest isn't begun
// when time is up.
func TestCancelled(t *testing.T) {
	s := begin(t)
	var chart string
	for i := range 200 {
		chart += config(fmt.Sprintf("c%d", i))
	}
	p := s.plan(chart)
	ctx, cancel := cancelled(t)
	n := 0
	err := s.planner(p).Run(ctx, p.Waves[0].Changes, func(*apply.Change) {
		if n++; n == 10 {
			cancel()
		}
	})
	if err == nil || n > 10+64 { // what was under way
		t.Errorf("%d changes, error %v", n, err)
	}
	if !errors.Is(err, ctx.Err()) {
		t.Errorf("the error isn't the context's: %v", err)
	}
}

// A chart that has no objects any more is not an uninstalled release.
func TestAChartWithoutObjectsIsNoUninstall(t *testing.T) {
	s := begin(t)
	s.deploy(config("a"))
	req := s.request("")
	req.Uninstall = false
	p, err := s.tryPlan(req)
	if err != nil {
		t.Fatal(err)
	}
	s.expect(p, "delete ConfigMap/a")
	if c := change(t, p, "ConfigMap", "a"); c.Reason != "removed from the chart" {
		t.Errorf("reason: %s", c.Reason)
	}
}

func weighed(name string, weight int) string {
	return strings.Replace(config(name), "metadata: {", fmt.Sprintf(`metadata: {annotations: {deployer.io/weight: "%d"}, `, weight), 1)
}

// Prevents that an object is deleted while one that must be gone first still exists, because somebody had
// recreated that since the plan.
func TestDeletionsWaitForWhatWasRecreated(t *testing.T) {
	s := begin(t)
	s.deploy(weighed("a", 1) + weighed("b", 2))
	s.opts.GoneTimeout = time.Second
	p := s.plan("")
	if err := s.client("v1", "ConfigMap").Delete(bg, "b", deleteNow); err != nil {
		t.Fatal(err)
	}
	anew := s.owned(s.manifests(weighed("b", 2))[0].Object)
	anew.SetFinalizers([]string{"example.com/wait"})
	anew = s.post(anew, "somebody")
	defer s.patch("v1", "ConfigMap", "b", types.MergePatchType, `{"metadata":{"finalizers":null}}`, "somebody")
	if _, err := s.tryRun(p); err == nil || !strings.Contains(err.Error(), "must be deleted first and still exists") {
		t.Errorf("error: %v", err)
	}
	if s.get("v1", "ConfigMap", "a") == nil {
		t.Error("a is gone")
	}
	for _, c := range p.Prune {
		if c.ID.Name == "b" && c.Live.GetUID() != anew.GetUID() {
			t.Error("the deletion to wait for is not that of the object that was deleted")
		}
	}
}

// Prevents that an interrupted run says of objects whose turn didn't come that what must be deleted first still exists.
func TestInterruptedBetweenTurns(t *testing.T) {
	s := begin(t)
	s.deploy(weighed("a", 1) + weighed("b", 2))
	s.patch("v1", "ConfigMap", "b", types.MergePatchType, `{"metadata":{"finalizers":["example.com/wait"]}}`, "somebody")
	defer s.patch("v1", "ConfigMap", "b", types.MergePatchType, `{"metadata":{"finalizers":null}}`, "somebody")
	ctx, cancel := context.WithCancelCause(bg)
	interrupted := errors.New("interrupted")
	p := s.plan("")
	err := s.planner(p).Prune(ctx, p.Prune, apply.UntilNotBack, func(*apply.Change) { cancel(interrupted) })
	if !errors.Is(err, interrupted) || errors.As(err, new(*apply.ObjectError)) {
		t.Errorf("error %v, want only the cause of the interruption", err)
	}
	if s.get("v1", "ConfigMap", "a") == nil {
		t.Error("a is gone")
	}
}

// TestDeletionsDoNotWaitForWhatIsKept fails if an ordered deletion waits for an
// object that isn't deleted any more, because somebody has had it kept since the plan.
func TestDeletionsDoNotWaitForWhatIsKept(t *testing.T) {
	s := begin(t)
	s.deploy(weighed("a", 1) + weighed("b", 2))
	p := s.plan("")
	s.expect(p, "delete ConfigMap/a", "delete ConfigMap/b")
	s.patch("v1", "ConfigMap", "b", types.MergePatchType, `{"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}}`, "somebody")
	s.opts.GoneTimeout = time.Second
	s.run(p)
	if s.get("v1", "ConfigMap", "a") != nil || s.get("v1", "ConfigMap", "b") == nil {
		t.Errorf("a is left, or b is gone")
	}
}
