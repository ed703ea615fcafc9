package apply

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"

	"deployer/apply/decide"
	"deployer/apply/provenance"
	"deployer/apply/verify"
	"deployer/internal/annotation"
	"deployer/internal/kube"
)

// CreateHook creates a hook's object and returns it as the server has it. An
// object of the same name is deleted first, or the error is a *HookExistsError: see
// decide.Claims.WhyInTheWay.
//
// An object that a dead run of the same attempt created from the same manifest is returned as it is,
// unless it has failed. attempt must not contain a dot; an empty one matches none.
func (a *Applier) CreateHook(ctx context.Context, m kube.Manifest, revisions []Revision, attempt string) (*unstructured.Unstructured, error) {
	p, t, err := a.prepareHook(ctx, "creating", m, revisions)
	if err != nil {
		return nil, err
	}
	run := newHookRun(t, attempt)
	desired, _, err := p.normalise(ctx, t)
	if err != nil {
		return nil, err
	}
	// The server would generate a name too, but it has to be known beforehand:
	// repeating a request whose answer was lost must not create a second object.
	t.id.Name = run.nameOf(desired)
	desired.SetName(t.id.Name)
	annotations := desired.GetAnnotations() // with those of its ownership
	annotations[annotation.HookRun.Name] = run.String()
	desired.SetAnnotations(annotations)
	p.warnings.reportLater(a.opts.Warn)
	ctx = p.warnings.withServerWarnings(ctx, t)
	how := mode{quotaChanges: a.planning != nil && a.planning.changedQuotas[t.id.Namespace]}
	for try := 0; ; try++ {
		obj, err := a.post(ctx, t, desired, how)
		if try == maxAttempts || !kube.IsAlreadyExists(err) && !mayBeHeldByFormer(err) {
			return obj, objectError(t, "creating", err)
		}
		live, err := p.makeWayForHook(ctx, t, run, err)
		if err != nil || live != nil {
			return live, err
		}
		how.quotaChanges = true // when it is counted that the former is gone
		pauseAfterRace(ctx, try)
	}
}

// FindHook returns the object that a dead run of the same attempt created from a hook's manifest; nil if
// there is none.
func (a *Applier) FindHook(ctx context.Context, m kube.Manifest, attempt string) (*unstructured.Unstructured, error) {
	p, t, err := a.prepareHook(ctx, "reading", m, nil)
	if err != nil {
		return nil, err
	}
	run := newHookRun(t, attempt)
	t.id.Name = run.nameOf(t.obj)
	live, err := a.get(ctx, t.mapping, t.id)
	if err != nil {
		return nil, objectError(t, "reading", err)
	}
	if live == nil || provenance.OwnerOf(live) != p.a.owner || !run.isSameAttempt(live) {
		return nil, nil
	}
	return live, nil
}

// prepareHook prepares a planning for the object of one hook. doing is the word for errors.
func (a *Applier) prepareHook(ctx context.Context, doing string, m kube.Manifest, revisions []Revision) (*planning, *target, error) {
	revisions = slices.Clone(revisions)
	for i := range revisions {
		revisions[i].Objects = nil // indexing all of them for each hook would take long
	}
	p, err := a.prepare(ctx, Request{Hooks: []kube.Manifest{m}, Revisions: revisions})
	if err != nil {
		return nil, nil, err
	}
	if len(p.rejected) > 0 {
		return nil, nil, objectError(&target{id: p.rejected[0].ID, source: m.Source, obj: m.Object}, doing, p.rejected[0].Err)
	}
	if len(p.hooks) != 1 {
		return nil, nil, fmt.Errorf("a hook must be one object, %s has %d", m.Source, len(p.hooks))
	}
	return p, p.hooks[0], nil
}

// makeWayForHook deals with an object that has a hook's name, or what the hook is refused for: it is returned if it
// does the hook's work, and gone otherwise.
func (p *planning) makeWayForHook(ctx context.Context, t *target, run hookRun, refusal error) (*unstructured.Unstructured, error) {
	live, err := p.a.get(ctx, t.mapping, t.id)
	switch {
	case (err != nil || live == nil) && !kube.IsAlreadyExists(refusal):
		return nil, objectError(t, "creating", refusal) // something else has it
	case err != nil:
		return nil, objectError(t, "reading", err)
	case live == nil:
		return nil, nil
	case live.GetDeletionTimestamp() != nil:
		return nil, objectError(t, "deleting", p.a.awaitGone(ctx, t.mapping, t.id, live.GetUID()))
	case provenance.OwnerOf(live) == p.a.owner && run.continues(live):
		return live, nil
	}
	if why := p.claims.WhyInTheWay(p.existing(t, live)); why != "" {
		return nil, objectError(t, "creating", &HookExistsError{Why: why})
	}
	how := metav1.DeletePropagationBackground
	if ended, _ := endOf(live); !ended {
		how = metav1.DeletePropagationForeground // two migrations must not be at work at once
	}
	// If it has changed since it was read, it is still there: CreateHook tries again.
	return nil, p.a.deleteHook(ctx, t, precondition{live.GetUID(), live.GetResourceVersion()}, how)
}

// A hookRun is one run of a hook. By its annotation we recognise an object that we
// created although the answer was lost, and one that does or has done the same work
// already.
type hookRun struct{ hash, attempt, nonce string }

// newHookRun returns a run of a hook in an attempt. Its hash is that of the manifest alone: the options of a run don't
// change what a hook does.
func newHookRun(t *target, attempt string) hookRun {
	manifest, _ := json.Marshal(t.obj.Object) // it was read from JSON
	sum := sha256.Sum256(manifest)
	return hookRun{hash: base64.RawStdEncoding.EncodeToString(sum[:12]), attempt: attempt, nonce: rand.String(10)}
}

func (r hookRun) String() string { return r.hash + "." + r.attempt + "." + r.nonce }

// continues reports whether an object does the work of this run, or has done it.
func (r hookRun) continues(live *unstructured.Unstructured) bool {
	if live.GetAnnotations()[annotation.HookRun.Name] == r.String() {
		return true // only the answer was lost
	}
	_, failed := endOf(live)
	return r.isSameAttempt(live) && !failed
}

// isSameAttempt reports whether an object was created from the same manifest in the same attempt.
func (r hookRun) isSameAttempt(live *unstructured.Unstructured) bool {
	return r.attempt != "" && strings.HasPrefix(live.GetAnnotations()[annotation.HookRun.Name], r.hash+"."+r.attempt+".")
}

func objectError(t *target, doing string, err error) error {
	if err == nil {
		return nil
	}
	return &ObjectError{ID: t.id, Source: t.source, Doing: doing, Err: verify.AsServerError(t.obj, err)}
}

// endOf reports whether a Job or Pod has come to its end, and whether that is a bad one. Other
// objects have nothing to do.
func endOf(obj *unstructured.Unstructured) (ended, failed bool) {
	switch obj.GroupVersionKind().GroupKind() {
	case kube.JobKind:
		is := func(kind string) bool { ok, _ := conditionOf(obj, kind); return ok }
		failed = is("Failed") || is("FailureTarget")
		return failed || is("Complete") || is("SuccessCriteriaMet"), failed
	case kube.PodKind:
		phase, _, _ := unstructured.NestedString(obj.Object, "status", "phase")
		return phase == "Succeeded" || phase == "Failed", phase == "Failed"
	}
	return true, false
}

// DeleteHook deletes an object that CreateHook returned and waits until it is
// gone. An object of the same name that is another one is left alone. CRDs are
// never deleted.
func (a *Applier) DeleteHook(ctx context.Context, obj *unstructured.Unstructured) error {
	id := kube.IDOf(obj)
	if id.IsCRD() {
		return nil
	}
	mapping, isServed, err := a.stillServed(ctx, obj.GroupVersionKind())
	if !isServed {
		return err
	}
	return a.deleteHook(ctx, &target{id: id, mapping: mapping}, precondition{uid: obj.GetUID()}, metav1.DeletePropagationBackground)
}

// deleteHook deletes the object of a hook and waits until it is gone. One that doesn't fulfil the
// precondition is left alone.
func (a *Applier) deleteHook(ctx context.Context, t *target, condition precondition, how metav1.DeletionPropagation) error {
	err := a.delete(ctx, t.mapping, t.id, condition, how)
	if kube.IsConflict(err) {
		return nil
	}
	if err == nil {
		err = a.awaitGone(ctx, t.mapping, t.id, condition.uid)
	}
	return objectError(t, "deleting", err)
}

// decideHook asks the server whether it would create one hook.
func (p *planning) decideHook(t *target, f *facts) (Change, error) {
	c := p.newChange(t, decide.Create)
	c.Desired = f.desired
	if decide.HasDeletePolicy(decide.DeletePolicies(t.obj.GetAnnotations()), "hook-succeeded") { // without it, the run would fail after the hook has succeeded
		c.needs = []string{"delete"}
	}
	if d := p.prerequisites.deferralOf(t); d != nil {
		return p.checkBefore(t, f, c.deferred(d))
	}
	if p.a.opts.Gate == GateOff {
		c.Unverified = "no dry run (--gate off)"
		return c, nil
	}
	return p.tryHook(t, f, c)
}

// tryHook decides by what the server would create. If the name is taken by an object that is gone
// when it is read, such as a Job after its TTL, the server is asked again.
func (p *planning) tryHook(t *target, f *facts, c Change) (Change, error) {
	said, err := p.try(t, f, trial{write: write{verb: postObject}, body: c.Desired})
	if err != nil {
		return c, err
	}
	exists := kube.IsAlreadyExists(said.refusal)
	if !exists && !mayBeHeldByFormer(said.refusal) || f.attempts == maxAttempts {
		return p.decideTriedHook(t, f, c, said)
	}
	switch now, err := f.now.get(p.observer.look(t)); {
	case err != nil:
		return c, err
	case now.forbidden:
		return p.decideRefused(t, f, c, now.refusal)
	case now.full != nil:
		return p.replaceHook(t, f, c, now.full)
	case !exists:
		return p.decideRefused(t, f, c, said.refusal)
	}
	return c, p.lookAgain(t, f)
}

// decideTriedHook decides about a hook by the answer to its dry run.
func (p *planning) decideTriedHook(t *target, f *facts, c Change, said tried) (Change, error) {
	if said.refusal != nil {
		return p.decideRefused(t, f, c, said.refusal)
	}
	c.Predicted, c.Fields = said.result, changedByServer(f.converter, c.Desired, said.result)
	return c, nil
}

// replaceHook decides about a hook whose name is taken by a live object: if that may be removed,
// the server is asked about the hook under another name.
func (p *planning) replaceHook(t *target, f *facts, c Change, live *unstructured.Unstructured) (Change, error) {
	c.Live = live
	if why := p.claims.WhyInTheWay(p.existing(t, live)); why != "" {
		return Change{}, t.reject(&HookExistsError{Why: why})
	}
	c.Reason = "the hook of an earlier run is deleted first"
	if !decide.IsHook(live) { // an object of the release, which the chart has made a hook
		c.Reason = "the object of this name, which was not a hook before, is deleted first"
	}
	c.needs = []string{"delete"}
	said, err := p.try(t, f, trial{write: write{verb: postObject}, body: c.Desired, beside: true})
	switch {
	case err != nil:
		return c, err
	case isOnlyForFormer(said.refusal, live):
		c.Unverified = noDryRunBeside(t, said.refusal)
		return c, nil
	}
	return p.decideTriedHook(t, f, c, said)
}
