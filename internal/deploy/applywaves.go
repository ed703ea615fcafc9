package deploy

import (
	"context"
	"slices"

	"deployer/apply"
	"deployer/apply/ordering"
	"deployer/internal/kube"
	"deployer/track"
)

// applyWaves applies the plan wave by wave. If a wave awaits objects, they are tracked
// first, even without --wait: the order is the chart's, and --wait is about the end of
// the release.
func (r *run) applyWaves(ctx context.Context) error {
	for rest := r.op.Plan.Waves; len(rest) > 0; {
		n, total := 1, len(rest[0].Changes)
		for n < len(rest) && len(rest[n].Await) == 0 && len(rest[n].PruneFirst) == 0 {
			total += len(rest[n].Changes)
			n++
		}
		if err := r.awaitDependencies(ctx, rest[0].Await); err != nil {
			return err
		}
		if err := r.pruneFirst(ctx, rest[0].PruneFirst); err != nil {
			return err
		}
		err := r.runStep(ctx, StepApply, total, func() error { return r.applyTogether(ctx, rest[:n]) })
		if err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// awaitDependencies tracks the objects that the next wave waits for.
func (r *run) awaitDependencies(ctx context.Context, needs []ordering.Dependency) error {
	var done []*apply.Change
	var outside []track.Target
	for _, need := range needs {
		if !need.Outside {
			if c := r.journal.applied[need.ID]; c != nil {
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
		if !createsKindsOrNamespaces(wave) {
			continue
		}
		// Decide about the deferred changes now, before the first workload changes.
		if err := r.applier.RedecideDeferred(ctx, r.op.Plan); err != nil {
			return err
		}
	}
	return nil
}

// createsKindsOrNamespaces reports whether a wave makes kinds or namespaces that later ones need.
func createsKindsOrNamespaces(wave apply.Wave) bool {
	return slices.ContainsFunc(wave.Changes, func(c apply.Change) bool {
		return (c.ID.IsNamespace() || c.ID.IsCRD()) && c.Action != apply.Unchanged
	})
}
