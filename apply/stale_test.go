package apply_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/apply/ownership"
)

// takenByOther gives a ConfigMap to another release, with a value of its own, as that release's run does: by the
// same field manager.
func (s *story) takenByOther(name, value string) {
	s.t.Helper()
	s.patch("v1", "ConfigMap", name, types.MergePatchType, fmt.Sprintf(
		`{"metadata":{"labels":{"app.kubernetes.io/managed-by":"Helm"},"annotations":{"meta.helm.sh/release-name":"other","meta.helm.sh/release-namespace":%q}},"data":{"k":%q}}`,
		s.ns, value), ownership.Manager)
}

// Prevents that a run writes an object that another release has adopted since the plan, while
// hooks ran. Both write as the same field manager, so no conflict shows it.
func TestObjectOfAnotherReleaseSinceThePlan(t *testing.T) {
	s := begin(t)
	s.deploy(config("a"))
	p := s.plan(strings.Replace(config("a"), "k: v", "k: w", 1))
	s.takenByOther("a", "theirs")
	_, err := s.tryRun(p)
	if owned := (*apply.OwnershipError)(nil); !errors.As(err, &owned) {
		t.Errorf("Run = %v, want *OwnershipError", err)
	}
	if got := fmt.Sprint(s.get("v1", "ConfigMap", "a").Object["data"]); got != "map[k:theirs]" {
		t.Errorf("data %s, want what the other release wrote", got)
	}
}

// Prevents that an object is deleted to be recreated although it became another release's since the plan, or
// somebody protected it.
func TestNotRecreatedSinceThePlan(t *testing.T) {
	t.Parallel()
	const immutable = "\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nimmutable: true\ndata: {k: v}\n"
	for name, change := range map[string]func(*story){
		"of another release": func(s *story) {
			s.patch("v1", "ConfigMap", "a", types.MergePatchType, `{"metadata":{"annotations":{"meta.helm.sh/release-name":"other"}}}`, ownership.Manager)
		},
		"kept": func(s *story) {
			s.patch("v1", "ConfigMap", "a", types.MergePatchType, `{"metadata":{"annotations":{"helm.sh/resource-policy":"keep"}}}`, "kubectl-edit")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t)
			s.opts.AllowRecreate = true
			s.deploy(immutable)
			p := s.plan(strings.Replace(immutable, "k: v", "k: w", 1))
			s.expect(p, "recreate ConfigMap/a")
			uid := s.get("v1", "ConfigMap", "a").GetUID()
			change(s)
			if _, err := s.tryRun(p); err == nil {
				t.Error("Run succeeded, want an error")
			}
			if got := s.get("v1", "ConfigMap", "a"); got == nil || got.GetUID() != uid {
				t.Errorf("it is another one now: %v", got)
			}
		})
	}
}

// Prevents that nobody is told that an object is missing: it was deleted, and a policy that the dry run
// didn't meet refuses the new one.
func TestRefusedRecreationSaysWhatIsMissing(t *testing.T) {
	const immutable = "\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nimmutable: true\ndata: {k: v}\n"
	s := begin(t)
	s.since("1.30", "ValidatingAdmissionPolicies")
	s.opts.AllowRecreate = true
	s.deploy(immutable)
	p := s.plan(strings.Replace(immutable, "k: v", "k: w", 1))
	s.expect(p, "recreate ConfigMap/a")
	s.policy("NS", "configmaps", "request.operation != 'CREATE'", "nothing new", s.dryRunOf(config("probe")))
	_, err := s.tryRun(p)
	if err == nil || !strings.Contains(err.Error(), "nothing new") || !strings.Contains(err.Error(), "the old object is deleted, and the new one doesn't exist") {
		t.Errorf("Run: %v", err)
	}
}

// Prevents that an undo gives an adopted object back as it was when the run was planned, though another release has
// adopted and changed it before it was written.
func TestPriorStateIsThatOfTheWrite(t *testing.T) {
	s := begin(t)
	s.post(s.manifests(config("a"))[0].Object, "kubectl")
	s.opts.TakeOwnership, s.opts.TakeOwnershipFrom = true, []string{"*"}
	p := s.plan(strings.Replace(config("a"), "k: v", "k: w", 1))
	s.takenByOther("a", "theirs")
	done := s.run(p)
	if len(done) != 1 || done[0].Provenance == nil {
		t.Fatalf("done: %+v", done)
	}
	prior, err := json.Marshal(done[0].Provenance.Adopted.Prior)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"k":"theirs"`, `"meta.helm.sh/release-name":"other"`} {
		if !strings.Contains(string(prior), want) {
			t.Errorf("the state to give back lacks %s: %s", want, prior)
		}
	}
}

// Prevents that an uninstall waits until its time is up for an object that it has left, because somebody
// protected it since the plan.
func TestKeptSinceThePlanIsNotAwaited(t *testing.T) {
	s := begin(t)
	s.deploy(config("a") + config("b"))
	p := s.plan("")
	s.patch("v1", "ConfigMap", "a", types.MergePatchType, `{"metadata":{"annotations":{"helm.sh/resource-policy":"keep"}}}`, "kubectl-edit")
	s.run(p)
	for _, c := range p.Prune {
		if want := map[string]decide.Action{"a": decide.Keep, "b": decide.Delete}[c.ID.Name]; c.Action != want {
			t.Errorf("%s after Run: %s, want %s", c.ID, c.Action, want)
		}
	}
}

// Prevents that what an adopted object was is lost with the answer to the first write, which has only changed whose its
// fields are.
func TestLostAnswerToAnAdoption(t *testing.T) {
	s := begin(t)
	made := s.manifests(config("a"))[0].Object
	made.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"})
	s.post(made, "kubectl-client-side-apply")
	s.opts.TakeOwnership = true
	var lost atomic.Bool
	s.through(&faulty{after: func(r *http.Request, _ *http.Response) error {
		if r.Method != http.MethodPatch || !real(r) || lost.Swap(true) {
			return nil
		}
		return fmt.Errorf("reading the answer: %w", io.ErrUnexpectedEOF)
	}})
	done := s.run(s.plan(strings.Replace(config("a"), "k: v", "k: w", 1)))
	if !lost.Load() || len(done) != 1 || done[0].Provenance == nil {
		t.Fatalf("done: %+v", done)
	}
	if prior := done[0].Provenance.Adopted.Prior; len(prior.ManagedFields) != 1 || prior.ManagedFields[0].Manager != "kubectl-client-side-apply" {
		t.Errorf("the managedFields to give back: %+v", prior.ManagedFields)
	}
}

// Prevents that fields stay with this release, so that their former manager meets conflicts with it, where a controller
// writes the object between the two requests that give it back.
func TestGivenBackWhileAControllerWrites(t *testing.T) {
	s := begin(t)
	s.post(s.manifests(config("a"))[0].Object, "flux")
	s.opts.TakeOwnership = true
	chart := strings.Replace(config("a"), "k: v", "k: w", 1)
	p := s.plan(chart)
	s.noteProvenance(slices.Collect(p.Changes()), s.run(p), false)
	s.record("failed", chart)

	var wrote atomic.Bool
	s.through(&faulty{after: func(r *http.Request, _ *http.Response) error {
		if r.Method == http.MethodPatch && real(r) && !wrote.Swap(true) {
			s.patch("v1", "ConfigMap", "a", types.MergePatchType, `{"metadata":{"labels":{"seen":"yes"}}}`, "controller")
		}
		return nil
	}})
	p = s.plan("")
	s.expect(p, "give-back ConfigMap/a")
	s.run(p)
	got := s.get("v1", "ConfigMap", "a")
	if !wrote.Load() || at(got, "data.k") != "v" || at(got, "metadata.labels.seen") != "yes" {
		t.Errorf("given back: %v %v", got.GetLabels(), got.Object["data"])
	}
	if m := managers(got); m != "controller/Update flux/Update" {
		t.Errorf("its fields are managed by %s", m)
	}
	if !slices.ContainsFunc(got.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return strings.Contains(e.FieldsV1.GetRawString(), `"f:k"`)
	}) {
		t.Errorf("data.k is nobody's: %v", got.GetManagedFields())
	}
}

// Prevents that a rollback whose answer was lost when it gave an object back calls the object another release's, and can't be
// repeated.
func TestLostAnswerToGivingBack(t *testing.T) {
	s := begin(t)
	s.deploy(config("a"))
	s.takenByOther("a", "theirs")
	s.opts.TakeOwnershipFrom = []string{"*"}
	p := s.plan(config("a"))
	s.noteProvenance(slices.Collect(p.Changes()), s.run(p), false)
	s.record("failed", config("a"))
	s.opts.TakeOwnershipFrom, s.backTo = nil, 1

	var lost atomic.Bool
	s.through(&faulty{after: func(r *http.Request, _ *http.Response) error {
		if r.Method != http.MethodPatch || !real(r) || lost.Swap(true) {
			return nil
		}
		return fmt.Errorf("reading the answer: %w", io.ErrUnexpectedEOF)
	}})
	p = s.plan(config("a"))
	s.expect(p, "give-back ConfigMap/a")
	s.run(p)
	if got := fmt.Sprint(s.get("v1", "ConfigMap", "a").Object["data"]); !lost.Load() || got != "map[k:theirs]" {
		t.Errorf("data %s, want what the other release wrote", got)
	}
	s.expect(s.plan(config("a")), "keep ConfigMap/a")
}

// Prevents that a plan only says that an object is given back, and not which of its fields that changes and which stay.
func TestPlanSaysWhatGivingBackChanges(t *testing.T) {
	s := begin(t)
	s.post(s.manifests("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v, l: v}")[0].Object, "flux")
	s.opts.TakeOwnership = true
	const chart = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: w, l: w, m: w}"
	p := s.plan(chart)
	s.noteProvenance(slices.Collect(p.Changes()), s.run(p), false)
	s.record("failed", chart)
	s.patch("v1", "ConfigMap", "a", types.MergePatchType, `{"data":{"l":"x"}}`, "kubectl-edit")

	for name, request := range map[string]apply.Request{
		"of what the chart lacks": s.request(""),
		"of what it has":          {Objects: s.manifests(chart), Revisions: s.past, BackTo: -1},
	} {
		p, err := s.tryPlan(request)
		if err != nil {
			t.Fatal(err)
		}
		for c := range p.Changes() {
			var changed []string
			for _, f := range c.Fields {
				if f.Path[0].FieldName != nil && *f.Path[0].FieldName == "data" {
					changed = append(changed, fmt.Sprintf("%s %s %v -> %v", f.Type, f, f.Before, f.After))
				}
			}
			if got, want := strings.Join(changed, "; "), "changed data.k w -> v; removed data.m w -> <nil>"; c.Action != decide.GiveBack || got != want {
				t.Errorf("%s: %s of %s, want %s", name, c.Action, got, want)
			}
			if !strings.Contains(c.Reason, "data.l has been changed since") || c.Unverified != "" {
				t.Errorf("%s: it says %q, not verified: %q", name, c.Reason, c.Unverified)
			}
		}
	}
}
