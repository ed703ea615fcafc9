package apply

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/internal/kube"
)

// The rules get no context, so that they can make no request: what they decide by is in the facts, and what else they want
// to know they have to ask here.

// A verdict is what the rules have come to about an object: a change, or what has to be known before.
type verdict struct {
	change Change
	ask    func(context.Context) (verdict, error) // asks, and goes on with the answer; nil when there is nothing to ask
	again  bool                                   // decide from the beginning about the object as it is then
}

// lookAgain is the verdict that the object has to be read again: it has changed while it was decided about.
func (t *target) lookAgain() verdict {
	t.progress.attempts++
	return verdict{again: true}
}

// decided is the verdict that nothing has to be known any more.
func decided(c Change) (verdict, error) { return verdict{change: c}, nil }

// ask is the verdict that a question has to be answered first; then goes on with the answer. Without one nothing is decided.
func ask[A any](question func(context.Context) (A, error), then func(A) (verdict, error)) verdict {
	return verdict{ask: func(ctx context.Context) (verdict, error) {
		answer, err := question(ctx)
		if err != nil {
			return verdict{}, err
		}
		return then(answer)
	}}
}

// finally returns a verdict whose change, or whose error, goes through f once it is decided.
func (v verdict) finally(err error, f func(Change, error) (Change, error)) (verdict, error) {
	switch asking := v.ask; {
	case err == nil && v.again: // from the beginning, where f comes again
	case err == nil && asking != nil:
		v.ask = func(ctx context.Context) (verdict, error) {
			v, err := asking(ctx)
			return v.finally(err, f)
		}
	default:
		c, err := f(v.change, err)
		return verdict{change: c}, err
	}
	return v, nil
}

// decide decides what to do with one target, by what was observed of it. The error is a *Rejection when nothing can be done.
func (p *planning) decide(ctx context.Context, t *target, s observation) (Change, error) {
	ctx = p.warnings.withServerWarnings(ctx, t)
	v, err := p.decideBy(ctx, t, s)
	return p.settle(ctx, t, v, err)
}

// lookAndDecide decides about a target as it is now.
func (p *planning) lookAndDecide(ctx context.Context, t *target) (Change, error) {
	return p.settle(p.warnings.withServerWarnings(ctx, t), t, verdict{again: true}, nil)
}

// settle is the one place where decisions ask the API server: it asks until there is a change. If the release changes the
// definition of the object's kind, that is a preview, and made again after that.
func (p *planning) settle(ctx context.Context, t *target, v verdict, err error) (Change, error) {
	for err == nil && (v.again || v.ask != nil) {
		if !v.again {
			v, err = v.ask(ctx)
			continue
		}
		if t.progress.attempts > 0 {
			pauseAfterRace(ctx, t.progress.attempts)
		}
		var now observation
		if now, err = p.look(t)(ctx); err == nil {
			v, err = p.decideBy(ctx, t, now)
		}
	}
	if err == nil && !t.isHook && v.change.Deferral == nil && p.prerequisites.kindChanges(t) {
		return p.deferChange(t, v.change, &Deferral{Reason: changingKind, Until: []kube.ID{t.definition()}}), nil
	}
	return v.change, err
}

// decideBy applies the rules to one target, by what was observed of it. Of a hook nothing has to be.
func (p *planning) decideBy(ctx context.Context, t *target, s observation) (verdict, error) {
	if t.noKind != nil {
		return verdict{}, t.reject(t.noKind)
	}
	f, err := p.factsOf(ctx, t, s)
	switch {
	case err != nil:
		return verdict{}, err
	case t.isHook:
		return p.decideHook(t, f)
	}
	return p.decideObject(t, f)
}

// look asks what a target is now.
func (p *planning) look(t *target) func(context.Context) (observation, error) {
	return func(ctx context.Context) (observation, error) { return p.observer.read(ctx, t) }
}

// A trial is a write that isn't made: the API server says what it would make of the object.
type trial struct {
	write  write
	body   *unstructured.Unstructured // that is written, where the write doesn't have its own
	beside bool                       // under another name: the object that it replaces is still there
	final  bool                       // a refusal isn't asked about again when a webhook doesn't answer
}

// try is the verdict that a write of a target has to be tried first; then goes on with what the object would be, or with the
// refusal.
func (p *planning) try(t *target, w trial, then func(result *unstructured.Unstructured, refusal error) (verdict, error)) verdict {
	return verdict{ask: func(ctx context.Context) (verdict, error) {
		try := func(body *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			awaitsQuota := p.changedQuotas[t.id.Namespace] && !t.deferral.awaitsAdmission() // for that, decideUntilAdmitted asks again
			return p.a.do(ctx, t, w.write, body, mode{isDryRun: true, isFinal: w.final, quotaChanges: awaitsQuota})
		}
		if w.beside {
			return then(underOtherName(t, w.body, try))
		}
		return then(try(w.body))
	}}
}

// mayDo asks whether the account may make a request of a change, and returns the change, marked as denied if it may not.
func (p *planning) mayDo(c Change, verb string, m kube.Mapping) func(context.Context) (Change, error) {
	return func(ctx context.Context) (Change, error) {
		err := p.permissions.denyUnlessAllowed(ctx, &c, verb, m)
		return c, err
	}
}

// do makes one write of an object of the chart, or asks what it would do. body is what is written, where the write doesn't
// have its own.
func (r *requester) do(ctx context.Context, t *target, w write, body *unstructured.Unstructured, m mode) (*unstructured.Unstructured, error) {
	switch w.verb {
	case createObject:
		return r.create(ctx, t, body, m)
	case createHook:
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
