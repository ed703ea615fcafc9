package apply

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/decide"
	"deployer/internal/kube"
)

// The rules get no context, so that they can make no request: they decide by facts, and return a Change. Where they need a fact that
// isn't known, their error says so. It is asked for here, and the rules decide again from the beginning. What later decisions have to
// know of this one is noted on the target here, too, and not by the rules.

// An unknownError is the error of rules that need a fact that isn't known.
type unknownError struct {
	ask func(context.Context) error // makes it known
}

func (e *unknownError) Error() string { return "this has to be asked first" }

// An answer is a fact that is asked for when the rules need it.
type answer[A any] struct {
	value   A
	isKnown bool
}

// get returns the answer. The error is an *unknownError before the question was asked.
func (a *answer[A]) get(question func(context.Context) (A, error)) (A, error) {
	if a.isKnown {
		return a.value, nil
	}
	return a.value, &unknownError{func(ctx context.Context) (err error) {
		if a.value, err = question(ctx); err == nil {
			a.isKnown = true
		}
		return err
	}}
}

// decide decides what to do with one target, by what was observed of it. The error is a *Rejection when nothing can be done.
func (p *planning) decide(ctx context.Context, t *target, s observation) (Change, error) {
	if t.noKind != nil {
		return Change{}, t.reject(t.noKind)
	}
	rules := p.decideObject
	if t.isHook { // of which nothing has to be observed
		rules = p.decideHook
	}
	return p.decideBy(ctx, t, s, rules)
}

// lookAndDecide decides about a target as it is now.
func (p *planning) lookAndDecide(ctx context.Context, t *target) (Change, error) {
	s, err := p.observer.read(ctx, t)
	if err != nil {
		return Change{}, err
	}
	return p.decide(ctx, t, s)
}

// maxRounds is more often than any rules begin again about one object. Each round has one more fact.
const maxRounds = 10 * maxAttempts

// decideBy is the one place where decisions ask the API server: it asks until the rules know enough. If the release changes the
// definition of the object's kind, the decision is a preview, and made again after that.
func (p *planning) decideBy(ctx context.Context, t *target, s observation, rules func(*target, *facts) (Change, error)) (Change, error) {
	ctx = p.warnings.withServerWarnings(ctx, t)
	f, err := p.factsOf(ctx, t, s, 0)
	for rounds := 0; err == nil; rounds++ {
		if rounds == maxRounds {
			return Change{}, &ObjectError{ID: t.id, Source: t.source, Doing: "deciding about", Err: errors.New("the same is asked again and again; please report this")}
		}
		var c Change
		c, err = rules(t, f)
		unknown, isUnknown := errors.AsType[*unknownError](err)
		switch {
		case isUnknown:
			err = unknown.ask(ctx)
		case err == nil:
			if !t.isHook && c.Deferral == nil && p.prerequisites.kindChanges(t) {
				c = c.deferred(&Deferral{Reason: changingKind, Until: []kube.ID{t.definition()}})
			}
			t.note(c, f)
			err = p.permissions.check(ctx, &c, t.mapping)
			return c, err
		}
	}
	return Change{}, err
}

// lookAgain is the error of rules that need to know what the object is now, because it has changed while it was decided about: all facts
// are collected again, after a pause, as others write it.
func (p *planning) lookAgain(t *target, f *facts) error {
	return &unknownError{func(ctx context.Context) error {
		if f.full == nil {
			t.progress.wasAbsent = f.absent
		}
		pauseAfterRace(ctx, f.attempts+1)
		s, err := p.observer.read(ctx, t)
		if err != nil {
			return err
		}
		again, err := p.factsOf(ctx, t, s, f.attempts+1)
		*f = *again
		return err
	}}
}

// note keeps of a decision what later ones about the target depend on.
func (t *target) note(c Change, f *facts) {
	if c.Deferral != nil {
		t.waits.deferral = c.Deferral
	}
	isMade := c.makes || f.absent
	if (c.Action == decide.Create || c.Action == decide.Recreate) && (isMade || c.Deferral == nil) {
		t.progress.wasAbsent = isMade
	}
}

// A trial is a write that isn't made: the API server says what it would make of the object.
type trial struct {
	write  write
	body   *unstructured.Unstructured // that is written, where the write doesn't have its own
	beside bool                       // under another name: the object that it replaces is still there
	final  bool                       // a refusal isn't asked about again when a webhook doesn't answer
}

// A tried is the answer to a trial: what the object would be, or the refusal.
type tried struct {
	trial   trial
	result  *unstructured.Unstructured
	refusal error
}

// try returns the answer to a trial of a target. The error is an *unknownError before it was asked for.
func (p *planning) try(t *target, f *facts, w trial) (tried, error) {
	if i := slices.IndexFunc(f.trials, func(known tried) bool { return reflect.DeepEqual(known.trial, w) }); i >= 0 {
		return f.trials[i], nil
	}
	return tried{}, &unknownError{func(ctx context.Context) error {
		try := func(body *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			awaitsQuota := p.changedQuotas[t.id.Namespace] && !t.waits.deferral.awaitsAdmission() // for that, decideUntilAdmitted asks again
			return p.a.do(ctx, t, w.write, body, mode{isDryRun: true, isFinal: w.final, quotaChanges: awaitsQuota})
		}
		said := tried{trial: w}
		if w.beside {
			said.result, said.refusal = underOtherName(t, w.body, try)
		} else {
			said.result, said.refusal = try(w.body)
		}
		f.trials = append(f.trials, said)
		return nil
	}}
}

// do makes one write of an object of the chart, or asks what it would do. body is what is written, where the write doesn't
// have its own.
func (r *requester) do(ctx context.Context, t *target, w write, body *unstructured.Unstructured, m mode) (*unstructured.Unstructured, error) {
	switch w.verb {
	case createObject:
		return r.apply(ctx, t, body, mustBeAbsent(), m)
	case postObject:
		return r.post(ctx, t, body, m)
	case patchObject:
		return r.sendJSONPatch(ctx, t, w.precondition.resourceVersion, w.operations, m)
	case applyObject:
		return r.apply(ctx, t, body, w.precondition, m)
	case replaceObject:
		return r.put(ctx, t, w.object, m)
	}
	return nil, errors.New("this is not a write of the chart's object")
}
