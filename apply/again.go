package apply

import (
	"context"
	"errors"
	"slices"

	"deployer/internal/kube"
)

// PlanAgain makes a plan again, in place, from what is in the cluster now: after hooks have run, and whatever else may
// have changed objects whose turn is still to come. What was carried out stays as it is: the CRDs, the hooks that run
// first, and the first done waves. What the plan has as the release's is so still, even if a hook has made it anew without
// ownership, and so is what wasn't there when the plan was made. The request is that of Plan. It changes nothing in the
// cluster. The error is like that of Plan, but late.
func (a *Applier) PlanAgain(ctx context.Context, req Request, plan *Plan, done int) error {
	settled := map[kube.ID]*Change{}
	settle := func(changes []Change) {
		for i := range changes {
			settled[changes[i].ID] = &changes[i]
		}
	}
	settle(plan.CRDs)
	for _, wave := range plan.Waves[:done] {
		settle(wave.PruneFirst)
		settle(wave.Changes)
	}
	if done > 0 {
		settle(plan.PruneFirst)
	}
	a.cluster.ForgetKinds()
	again, err := a.plan(ctx, req, settled, a.planning.oursAfter(plan, done))
	if err == nil {
		err = again.CheckPermissions()
	}
	if rejected, ok := errors.AsType[*RejectedError](err); ok {
		if rejected.When = AfterHooks; done > 0 {
			rejected.When = AfterChanges
		}
	}
	if err != nil {
		return err
	}
	for _, w := range again.Warnings {
		if !slices.Contains(plan.Warnings, w) {
			plan.Warnings = append(plan.Warnings, w)
			if a.opts.Warn != nil {
				a.opts.Warn(w.String())
			}
		}
	}
	switch {
	case done == 0:
		plan.PruneFirst = again.PruneFirst
	case len(again.Waves) > 0: // it has come since
		again.Waves[0].PruneFirst = append(again.PruneFirst, again.Waves[0].PruneFirst...)
	}
	plan.Waves = slices.Concat(plan.Waves[:done], again.Waves)
	plan.Prune, plan.PruneLast, plan.Hooks = again.Prune, again.PruneLast, slices.Concat(plan.Hooks[:req.PreHooks], again.Hooks)
	return nil
}

// oursAfter are the objects after the first done waves of its plan that are the release's, and those that weren't there: whoever
// has made one meanwhile without ownership, a hook most likely, has made it for the release. p is nil when its plan writes nothing.
func (p *planning) oursAfter(plan *Plan, done int) map[kube.ID]bool {
	out := map[kube.ID]bool{}
	for _, wave := range plan.Waves[done:] {
		for _, c := range wave.Changes {
			isAbsent := func(t *target) bool { return t != nil && (t.progress.wasAbsent || p.prerequisites.isNew(t)) }
			out[c.ID] = c.Action == Create && isAbsent(p.target(c.ID)) || c.Live != nil && (c.Action == Unchanged || c.Action == Update || c.Action == Recreate)
		}
	}
	return out
}

// isAgain reports whether the plan is made again.
func (p *planning) isAgain() bool { return p.settled != nil }

// unsettled returns the targets that this run hasn't dealt with, and notes what became of the others.
func (p *planning) unsettled(targets []*target) []*target {
	return slices.DeleteFunc(slices.Clone(targets), func(t *target) bool {
		c := p.settled[t.id]
		if c != nil {
			t.decided = c
		}
		return c != nil
	})
}

// Vanished returns the objects of changes that were carried out and that aren't in the cluster any more. One that the account may
// not read counts as there.
func (a *Applier) Vanished(ctx context.Context, changes []*Change) ([]kube.ID, error) {
	lookups := make([]lookup, len(changes))
	for i, c := range changes {
		m, isServed, err := a.stillServed(ctx, c.Applied.GroupVersionKind())
		if err != nil {
			return nil, &ObjectError{ID: c.ID, Source: c.Source, Doing: "looking once more at", Err: err}
		}
		lookups[i] = lookup{collection{mapping: m, namespace: c.ID.Namespace}, c.ID.Name, !isServed}
	}
	o := &observer{a: a, prerequisites: &prerequisites{}, warnings: &warnings{}}
	never := func(int, bool) bool { return false }
	seen, err := o.listOrGet(ctx, lookups, never, func(i int) (observation, error) {
		if lookups[i].in.mapping == (kube.Mapping{}) {
			return observation{}, nil // the kind is gone
		}
		return o.observeMeta(ctx, lookups[i].in.mapping, changes[i].ID, changes[i].Source)
	})
	if err != nil {
		return nil, err
	}
	var gone []kube.ID
	for i, s := range seen {
		if s.meta == nil && !s.forbidden {
			gone = append(gone, changes[i].ID)
		}
	}
	return gone, nil
}
