package apply

import (
	"context"
	"errors"
	"slices"

	"deployer/internal/kube"
)

// RedecideDeferred decides again, in place, about the deferred changes of p whose
// prerequisites are all present, also about hooks. Run does the same for the changes that it is given.
// Calling this when the new namespaces, the CRDs and the other prerequisites exist
// reports all rejections before the first workload changes. Other changes stay as they
// are. It changes nothing in the cluster. The error is like that of Plan, but late.
func (a *Applier) RedecideDeferred(ctx context.Context, p *Plan) error {
	lists := [][]Change{p.Hooks}
	for _, wave := range p.Waves {
		lists = append(lists, wave.Changes)
	}
	isDeferred := func(c Change) bool { return c.Deferral != nil }
	if !slices.ContainsFunc(lists, func(list []Change) bool { return slices.ContainsFunc(list, isDeferred) }) {
		return nil
	}
	all := slices.Concat(lists...)
	var bad []Rejection
	err := a.redecideDeferred(ctx, all, false)
	if rejected, ok := errors.AsType[*RejectedError](err); ok {
		for _, r := range rejected.Rejections {
			if !errors.As(r.Err, new(*kube.NoKindMatchError)) {
				bad = append(bad, r)
			}
		}
	} else if err != nil {
		return err
	}
	i := 0
	for _, list := range lists {
		i += copy(list, all[i:])
	}
	if len(bad) > 0 {
		return &RejectedError{Rejections: bad, Late: true}
	}
	return nil
}

// redecideDeferred decides again, in place, about deferred changes whose prerequisites are
// present; if itsTurn is set, about all of them, because their turn has come. Unless the gate is
// strict, rejections are dropped: the object is tried when its turn comes.
func (a *Applier) redecideDeferred(ctx context.Context, changes []Change, itsTurn bool) error {
	var open []int
	for i, c := range changes {
		if c.Deferral == nil || c.execution == nil {
			continue
		}
		c.execution.p.prerequisites.markPresent(namespaceIDs(c.execution.p.req.NewNamespaces)...) // made before the first change
		if itsTurn || !c.execution.p.prerequisites.anyMissing(c.Deferral.Until...) {
			open = append(open, i)
		}
	}
	if err := prepareRedecisions(ctx, changes, open, itsTurn); err != nil {
		return err
	}
	rejections := make([]Rejection, len(open))
	err := a.forEach(ctx, len(open), func(i int) error {
		c := &changes[open[i]]
		next, err := c.execution.redecideOne(ctx, *c, itsTurn)
		if rejected, ok := errors.AsType[*Rejection](err); ok {
			rejections[i] = *rejected
			return nil
		}
		if err == nil {
			*c = next
			if next.denied != nil {
				rejections[i] = Rejection{ID: next.ID, Source: next.Source, Err: next.denied}
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	bad := slices.DeleteFunc(rejections, func(r Rejection) bool { return r.Err == nil })
	if len(bad) > 0 && a.opts.Gate == GateStrict {
		return &RejectedError{Rejections: bad, Late: true}
	}
	return nil
}

// redecide decides again about a change. itsTurn says that its turn has come and all its
// prerequisites are present.
func (e *execution) redecide(ctx context.Context, c Change, itsTurn bool) (Change, error) {
	if e.t == nil {
		return e.pruner.redecideOrphan(ctx, c)
	}
	if err := e.p.prepareRedecision(ctx, e.t, itsTurn); err != nil {
		return Change{}, err
	}
	if err := e.p.definitions.readGenerations(ctx, []*target{e.t}); err != nil {
		return Change{}, err
	}
	if e.isHook {
		return e.p.decideHook(ctx, e.t)
	}
	return e.p.redecide(ctx, e.t)
}

// prepareRedecisions prepares deciding again about deferred changes, given by their indexes. It reads
// the definition of each kind once.
func prepareRedecisions(ctx context.Context, changes []Change, open []int, itsTurn bool) error {
	ready := map[*planning][]*target{}
	for _, i := range open {
		e := changes[i].execution
		if e.p.prepareRedecision(ctx, e.t, itsTurn) != nil {
			continue // the error comes again when the change is decided
		}
		ready[e.p] = append(ready[e.p], e.t)
	}
	for p, targets := range ready {
		if err := p.definitions.readGenerations(ctx, targets); err != nil {
			return err
		}
	}
	return nil
}

// prepareRedecision prepares deciding again about a target. itsTurn says that its turn has come and all its
// prerequisites are present.
func (p *planning) prepareRedecision(ctx context.Context, t *target, itsTurn bool) error {
	if itsTurn {
		t.markPrerequisitesPresent(p.prerequisites)
	}
	if t.deferral.waitsFor(t.definition()) {
		return p.resolver.refresh(ctx, t)
	}
	return nil
}

// redecideOne is redecide for a deferred change, after prepareRedecisions. An object whose kind or
// namespace is new isn't read: a dry run of creating it fails if somebody has made it since. A list
// wouldn't do: the API server refuses lists of a new kind for about a second.
func (e *execution) redecideOne(ctx context.Context, c Change, itsTurn bool) (Change, error) {
	if e.isHook || e.p.a.opts.Gate == GateOff || !e.p.prerequisites.isNew(e.t) {
		return e.redecide(ctx, c, itsTurn)
	}
	if err := e.p.prepareRedecision(ctx, e.t, itsTurn); err != nil {
		return Change{}, err
	}
	return e.p.decide(ctx, e.t, observation{})
}
