package deploy

import (
	"cmp"
	"context"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/apply/ordering"
	"deployer/internal/kube"
	"deployer/track"
)

func (r *run) waitUntilReady(ctx context.Context) error {
	if !r.op.wait {
		return nil
	}
	return r.waitFor(ctx, r.trackTargets(r.appliedInOrder(), r.skipsFinalWait))
}

// skipsFinalWait reports whether an object isn't waited for. A Job that others have waited
// for has ended, and may have been deleted since.
func (r *run) skipsFinalWait(c *apply.Change) bool {
	return isJob(c.ID) && (!r.d.Settings.WaitJobs || r.wasAwaited[c.ID])
}

// appliedInOrder lists what was applied, in the order of the plan.
func (r *run) appliedInOrder() []*apply.Change {
	var out []*apply.Change
	for _, wave := range r.op.Plan.Waves {
		for i := range wave.Changes {
			if c := &wave.Changes[i]; c.IsDone {
				out = append(out, c)
			}
		}
	}
	return out
}

// waitFor is the step that waits for objects of the release. What the chart dropped goes while they are stuck for something that
// it has.
func (r *run) waitFor(ctx context.Context, targets []track.Target) error {
	return r.runStep(ctx, StepWait, len(targets), func() error {
		if len(r.op.Plan.Prune) == 0 {
			return r.track(ctx, targets, nil)
		}
		return r.trackAndMakeRoom(ctx, targets)
	})
}

// track tracks targets within the timeout of one wait. note, which may be nil, takes in what is told of them.
func (r *run) track(ctx context.Context, targets []track.Target, note func(track.Event)) error {
	if limit := r.d.Settings.Timeout; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	return r.tracker.Wait(ctx, targets, func(e track.Event) {
		if note != nil {
			note(e)
		}
		r.emit(Event{Event: e})
	})
}

// trackTargets returns the targets to track for changes, except those for which skip returns true.
func (r *run) trackTargets(changes []*apply.Change, skip func(*apply.Change) bool) []track.Target {
	var targets []track.Target
	for _, c := range changes {
		if c.Applied == nil || skip(c) {
			continue
		}
		if isLeaving := c.Applied.GetDeletionTimestamp() != nil; isLeaving && (c.Action == decide.Unchanged || c.Warning != "" || r.d.Settings.Track.ReadyWhenPresent(c.Applied)) {
			continue
		}
		target := track.Target{
			ID: c.ID, GVK: c.Applied.GroupVersionKind(), Baseline: c.Applied,
			Changed: c.Action != decide.Unchanged, Previous: c.Live,
		}
		if c.WasNotCompared() {
			// Little but the metadata is known, which is enough for kinds without a status.
			if r.d.Settings.Track.ReadyWhenUnchanged(c.Applied) {
				continue
			}
			target.Baseline, target.Previous = nil, nil
		}
		targets = append(targets, target)
	}
	return targets
}

// waitsFor lists the objects that the final wait is about: all except those that are
// ready as soon as they exist.
func (d *Deployer) waitsFor(op *Operation) []ordering.Dependency {
	var out []ordering.Dependency
	for _, wave := range op.Plan.Waves {
		for _, c := range wave.Changes {
			obj := cmp.Or(c.Desired, c.Live)
			if c.Action == decide.GiveBack || c.Action == decide.Keep {
				continue // it isn't the release's
			}
			if obj != nil && !d.Settings.Track.ReadyWhenPresent(obj) && (d.Settings.WaitJobs || !isJob(c.ID)) {
				out = append(out, ordering.Dependency{ID: c.ID, State: ordering.Ready})
			}
		}
	}
	for _, c := range op.Plan.Prune {
		if op.Verb == Uninstall && c.Action == decide.Delete {
			out = append(out, ordering.Dependency{ID: c.ID, State: ordering.Gone})
		}
	}
	return out
}

func isJob(id kube.ID) bool { return id.GroupKind() == kube.JobKind }
