package apply

import (
	"context"
	"errors"
	"slices"

	"deployer/internal/kube"
)

// PlanAgain makes a plan again, in place, from what is in the cluster now: after hooks have run, and whatever else may
// have changed objects whose turn is still to come. What was carried out stays as it is: the CRDs, the hooks that run
// first, and the first done waves. The request is that of Plan. It changes nothing in the cluster. The error is like
// that of Plan, but late.
func (a *Applier) PlanAgain(ctx context.Context, req Request, plan *Plan, done int) error {
	settled := map[kube.ID]*Change{}
	settle := func(changes []Change) {
		for i := range changes {
			settled[changes[i].ID] = &changes[i]
		}
	}
	settle(plan.CRDs)
	for _, wave := range plan.Waves[:done] {
		settle(wave.Changes)
	}
	a.cluster.ForgetKinds()
	again, err := a.plan(ctx, req, settled)
	if err == nil {
		err = again.CheckPermissions()
	}
	if rejected, ok := errors.AsType[*RejectedError](err); ok {
		rejected.Late, rejected.OnlyHooksRan = true, done == 0
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
