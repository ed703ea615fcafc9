package apply

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/internal/kube"
)

// A verdict is what the rules have come to about an object: a change, or what has to be asked before.
type verdict struct {
	change Change
	next   *question // nil when the change is decided
}

// A question is one that only the API server can answer: what the object is now, or what it would become.
type question struct {
	try    *write                     // that it would accept; nil asks for the whole object as it is
	body   *unstructured.Unstructured // that try writes, where it doesn't have its own
	beside bool                       // try it under another name: the object that it replaces is still there
	final  bool                       // a refusal isn't asked about again when a webhook doesn't answer
	pause  int                        // the number of the race that was lost before; 0 for none

	// then goes on with the answer; nil decides from the beginning about the object as it is now.
	then func(answer) (verdict, error)
}

// An answer is the API server's to a question.
type answer struct {
	found  observation
	result *unstructured.Unstructured // of the dry run
	err    error
}

// lookAgain is the verdict that the object has to be read again. Races are those that were lost before; 0 for none.
func lookAgain(races int) verdict { return verdict{next: &question{pause: races}} }

// decide decides what to do with one target, by what was observed of it. It is the one place where decisions ask the API
// server: it applies the rules, asks what they want to know, and goes on with the answer. The error is a *Rejection when
// nothing can be done.
func (p *planning) decide(ctx context.Context, t *target, s observation) (Change, error) {
	ctx = p.warnings.withServerWarnings(ctx, t)
	v, err := p.decideBy(ctx, t, s)
	return p.settle(ctx, t, v, err)
}

// settle asks until there is a decision. If the release changes the definition of an object's kind, that is a preview, and
// made again after that.
func (p *planning) settle(ctx context.Context, t *target, v verdict, err error) (Change, error) {
	for err == nil && v.next != nil {
		q := v.next
		switch a := p.ask(ctx, t, *q); {
		case q.then != nil:
			v, err = q.then(a)
		case a.err != nil:
			return Change{}, a.err
		default:
			v, err = p.decideBy(ctx, t, a.found)
		}
	}
	if err == nil && !t.isHook && v.change.Deferral == nil && p.prerequisites.kindChanges(t) {
		return p.deferChange(t, v.change, &Deferral{Reason: changingKind, Until: []kube.ID{t.definition()}}), nil
	}
	return v.change, err
}

// ask asks the API server. It changes nothing.
func (p *planning) ask(ctx context.Context, t *target, q question) (a answer) {
	if q.pause > 0 {
		pauseAfterRace(ctx, q.pause)
	}
	if q.try == nil {
		a.found, a.err = p.observer.read(ctx, t)
		return a
	}
	t.progress.refusalIsFinal = q.final
	defer func() { t.progress.refusalIsFinal = false }()
	try := func(body *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		return p.a.do(ctx, t, *q.try, body, asDryRun)
	}
	if q.beside {
		a.result, a.err = underOtherName(t, q.body, try)
	} else {
		a.result, a.err = try(q.body)
	}
	return a
}

// finally returns a verdict whose change, or whose error, goes through f once it is decided.
func (v verdict) finally(err error, f func(Change, error) (Change, error)) (verdict, error) {
	if err != nil || v.next == nil {
		c, err := f(v.change, err)
		return verdict{change: c}, err
	}
	if then := v.next.then; then != nil {
		q := *v.next
		q.then = func(a answer) (verdict, error) {
			v, err := then(a)
			return v.finally(err, f)
		}
		v.next = &q
	}
	return v, nil
}

// readAndDecide decides about a target as it is now.
func (p *planning) readAndDecide(ctx context.Context, t *target) (Change, error) {
	return p.settle(p.warnings.withServerWarnings(ctx, t), t, lookAgain(0), nil)
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
