package deploy

import (
	"context"

	"deployer/apply"
	"deployer/apply/ordering"
	"deployer/internal/kube"
	"deployer/track"
)

// waves applies the plan wave by wave. Where a wave awaits something, that is
// followed first, whatever was said about waiting: the order is the chart's, and
// --wait is about the end of the release.
func (r *run) waves(ctx context.Context) error {
	for rest := r.op.Plan.Waves; len(rest) > 0; {
		n, total := 1, len(rest[0].Changes)
		for n < len(rest) && len(rest[n].Await) == 0 {
			total += len(rest[n].Changes)
			n++
		}
		if err := r.awaitAll(ctx, rest[0].Await); err != nil {
			return err
		}
		err := r.stage(ctx, "apply", total, func() error { return r.applyAll(ctx, rest[:n]) })
		if err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// awaitAll follows what the next objects wait for.
func (r *run) awaitAll(ctx context.Context, needs []ordering.Dependency) error {
	var done []apply.Change
	var outside []track.Target
	for _, need := range needs {
		switch {
		case !need.Outside:
			done = append(done, r.applied[need.ID])
		case need.State == ordering.Present:
			outside = append(outside, track.Target{ID: need.ID, GVK: need.GVK, Until: track.UntilPresent, Awaited: true})
		default:
			outside = append(outside, track.Target{ID: need.ID, GVK: need.GVK, Awaited: true})
		}
	}
	targets := append(r.targetsOf(done, r.atOnce), outside...)
	if err := r.stage(ctx, "wait", len(targets), func() error { return r.await(ctx, targets) }); err != nil {
		return err
	}
	for _, c := range done {
		r.ready[c.ID] = true
	}
	return ctx.Err()
}

// atOnce tells which objects are ready as soon as they are there: those without
// a status, where nobody has made a rule.
func (r *run) atOnce(id kube.ID) bool {
	c := r.applied[id]
	return c.Result != nil && r.Settings.Track.Still(c.Result)
}

// applyAll applies waves of which none waits for more than the ones before it to
// be applied.
func (r *run) applyAll(ctx context.Context, waves []apply.Wave) error {
	for _, wave := range waves {
		if err := r.apply(ctx, "apply", wave.Changes); err != nil {
			return err
		}
		if !opens(wave) {
			continue
		}
		// What could not be asked about until now is, before the first workload changes.
		if err := r.applier.Recheck(ctx, r.op.Plan); err != nil {
			return err
		}
	}
	return nil
}

// opens tells whether a wave makes kinds or namespaces that later ones need.
func opens(wave apply.Wave) bool {
	for _, c := range wave.Changes {
		if (c.ID.Kind == "Namespace" || c.ID.Kind == "CustomResourceDefinition") && c.Action != apply.None {
			return true
		}
	}
	return false
}
