package apply

import "context"

// prepareRedecisions prepares deciding again about deferred changes, given by their indexes. It reads
// the definition of each kind once.
func prepareRedecisions(ctx context.Context, changes []Change, open []int, now bool) error {
	ready := map[*planning][]*target{}
	for _, i := range open {
		e := changes[i].execution
		if e.p.prepareRedecision(ctx, e.t, now) != nil {
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

// prepareRedecision prepares deciding again about a target. now says that its turn has come and all its
// prerequisites are present.
func (p *planning) prepareRedecision(ctx context.Context, t *target, now bool) error {
	if now {
		t.markPrerequisitesPresent(p.prerequisites)
	}
	if t.deferral.waitsFor(t.definition()) {
		return p.refreshMapping(ctx, t)
	}
	return nil
}

// redecideDeferred is redecide for a deferred change, after prepareRedecisions. An object whose kind or
// namespace is new isn't read: a dry run of creating it fails if somebody has made it since. A list
// wouldn't do: the API server refuses lists of a new kind for about a second.
func (e *execution) redecideDeferred(ctx context.Context, c Change, now bool) (Change, error) {
	if e.p.a.opts.Gate == GateOff || !e.p.prerequisites.isNew(e.t) {
		return e.redecide(ctx, c, now)
	}
	if err := e.p.prepareRedecision(ctx, e.t, now); err != nil {
		return Change{}, err
	}
	return e.p.decide(ctx, e.t, observation{})
}
