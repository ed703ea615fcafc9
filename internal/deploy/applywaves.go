package deploy

import (
	"context"

	"deployer/apply"
	"deployer/apply/ordering"
	"deployer/internal/kube"
	"deployer/track"
)

// applyWaves applies the plan wave by wave. If a wave awaits objects, they are tracked
// first, even without --wait: the order is the chart's, and --wait is about the end of
// the release.
func (r *run) applyWaves(ctx context.Context) error {
	done, looked := 0, 0 // waves that are applied, and that were when the plan was made
	for done < len(r.op.Plan.Waves) && !r.op.Plan.Waves[done].Last {
		if err := r.awaitDependencies(ctx, r.op.Plan.Waves[done].Await); err != nil {
			return err
		}
		if ranProgram(r.op.Plan.Waves[looked:done]) && len(r.op.Plan.Waves[done].Await) > 0 {
			if err := r.lookAgain(ctx, done); err != nil {
				return err
			}
			looked = done
			continue // what the wave waits for may be different now
		}
		rest := r.op.Plan.Waves[done:]
		n, total := 1, len(rest[0].Changes)
		for n < len(rest) && !rest[n].Last && len(rest[n].Await) == 0 && len(rest[n].PruneFirst) == 0 {
			total += len(rest[n].Changes)
			n++
		}
		if err := r.pruneFirst(ctx, rest[0].PruneFirst); err != nil {
			return err
		}
		err := r.runStep(ctx, StepApply, total, func() error { return r.applyTogether(ctx, rest[:n]) })
		if err != nil {
			return err
		}
		done += n
	}
	return nil
}

// awaitDependencies tracks the objects that the next wave waits for.
func (r *run) awaitDependencies(ctx context.Context, needs []ordering.Dependency) error {
	var done []*apply.Change
	var outside []track.Target
	for _, need := range needs {
		if !need.Outside {
			if c := r.journal.applied[need.ID]; c != nil && !r.wasAwaited[need.ID] {
				done = append(done, c)
			}
			continue
		}
		target := track.Target{ID: need.ID, GVK: need.GVK, MayAppearLater: true}
		if need.State == ordering.Present {
			target.Until = track.UntilPresent
		}
		outside = append(outside, target)
	}
	if err := r.waitFor(ctx, append(r.trackTargets(done, r.isReadyWhenApplied), outside...)); err != nil {
		return err
	}
	for _, c := range done {
		r.wasAwaited[c.ID] = true
	}
	return ctx.Err()
}

// isReadyWhenApplied reports whether an object is ready as soon as it is applied: it has neither a status
// nor a rule.
func (r *run) isReadyWhenApplied(id kube.ID) bool {
	c := r.journal.applied[id]
	return c != nil && c.Applied != nil && r.Settings.Track.ReadyWhenPresent(c.Applied)
}

// applyTogether applies consecutive waves. No wave after the first waits for readiness.
func (r *run) applyTogether(ctx context.Context, waves []apply.Wave) error {
	for _, wave := range waves {
		if err := r.applyChanges(ctx, StepApply, wave.Changes); err != nil {
			return err
		}
		// Decide about the deferred changes as soon as what they wait for is there, before the first workload changes.
		if err := r.applier.RedecideDeferred(ctx, r.op.Plan); err != nil {
			return err
		}
	}
	return nil
}
