package deploy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/apply/ordering"
	"deployer/internal/kube"
	"deployer/internal/program"
	"deployer/track"
	"deployer/track/class"
	"deployer/track/finding"
)

// applyWaves applies the plan wave by wave, after those that are done. If a wave awaits objects, they are tracked
// first, even without --wait: the order is the chart's, and --wait is about the end of
// the release.
func (r *run) applyWaves(ctx context.Context, done int) error {
	looked := done // waves that were applied when the plan was made
	for done < len(r.op.Plan.Waves) && !r.op.Plan.Waves[done].Last {
		if err := r.awaitDependencies(ctx, r.op.Plan.Waves[done].Await); err != nil {
			return err
		}
		if ranProgram(r.op.Plan.Waves[looked:done]) && len(r.op.Plan.Waves[done].Await) > 0 {
			if err := r.planAgain(ctx, done); err != nil {
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
		if err := r.prune(ctx, rest[0].PruneFirst, apply.UntilGone); err != nil {
			return err
		}
		err := r.runStep(ctx, StepApply, total, func() error {
			for _, wave := range rest[:n] { // no wave after the first waits for anything
				if err := r.applyChanges(ctx, StepApply, wave.Changes); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		done += n
	}
	return nil
}

// awaitDependencies tracks the objects that the next wave waits for.
func (r *run) awaitDependencies(ctx context.Context, needs []ordering.Dependency) error {
	applied := map[kube.ID]*apply.Change{}
	for _, c := range r.appliedInOrder() {
		applied[c.ID] = c
	}
	var done []*apply.Change
	var outside []track.Target
	for _, need := range needs {
		if !need.Outside {
			if c := applied[need.ID]; c != nil && !r.wasAwaited[need.ID] {
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
func (r *run) isReadyWhenApplied(c *apply.Change) bool { return r.tracker.ReadyWhenPresent(c.Applied) }

// patience is how long an object has to lack something before what the chart dropped goes for it: much of that passes by itself.
const patience = 5 * time.Second

// nodePatience is the patience with nodes that lack resources: a new node may be on its way, and is announced after some time.
const nodePatience = 30 * time.Second

// trackAndMakeRoom tracks targets. What the chart dropped goes while they are stuck for something that it has.
func (r *run) trackAndMakeRoom(ctx context.Context, targets []track.Target) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stuck := &stuckObjects{lacks: map[kube.ID]track.Finding{}}
	ended := make(chan error, 1)
	go func() { ended <- r.track(ctx, targets, stuck.note) }()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-ticker.C:
		}
		for id, lack := range stuck.overdue() {
			changes := r.op.Plan.TakeWhatIsShort(id, lack)
			if err := r.applier.Prune(ctx, changes, apply.UntilNotBack, r.reportApplied(StepPrune)); err != nil && ctx.Err() == nil {
				cancel()
				<-ended
				return err
			}
		}
	}
}

// stuckObjects are the objects that aren't ready because they lack something that others may have, and why.
type stuckObjects struct {
	mu    sync.Mutex
	lacks map[kube.ID]track.Finding
}

// note takes in what has happened to an object.
func (s *stuckObjects) note(e track.Event) {
	id, f := e.Status.ID, e.Status.Finding
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !e.Kind.IsStatus():
	case f != nil && !e.Status.State.IsFinal() && isShortage(f.Class):
		s.lacks[id] = *f
	default:
		delete(s.lacks, id)
	}
}

// saysWhatIsShort has the classes of findings about objects that lack something that others may have, and whether their messages say
// what. Those of programs that run and don't get ready don't: it may be traffic.
var saysWhatIsShort = map[track.Class]bool{
	class.Unschedulable: true, class.NoNodeFits: true, class.QuotaExceeded: true, class.QuotaDeadlock: true, class.MultiAttach: true, class.ResourceClaimUnallocated: true,
	class.CrashLoop: false, class.ReadinessProbeFailed: false, class.StartupProbeFailed: false, class.LivenessProbeFailed: false,
}

func isShortage(of track.Class) bool {
	_, is := saysWhatIsShort[of]
	return is
}

// overdue returns what objects lack that have been stuck for long enough.
func (s *stuckObjects) overdue() map[kube.ID]decide.Shortage {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[kube.ID]decide.Shortage{}
	for id, f := range s.lacks {
		lack, limit := decide.Shortage{}, patience
		if saysWhatIsShort[f.Class] {
			lack.Message = f.Message
		}
		if lack.IsOfNodes() {
			limit = nodePatience
		}
		if time.Since(f.Since) > limit {
			out[id] = lack
		}
	}
	return out
}

// planAgain makes the plan again for what comes after its first done waves: hooks have run, or the run has waited, so
// that the objects may not be any more what they were when the plan was made. The error is a late rejection.
func (r *run) planAgain(ctx context.Context, done int) (err error) {
	ctx, end := LimitStep(ctx, StepDecide, r.d.Settings.Timeout)
	defer func() { err = end(err) }()
	if err := r.applier.PlanAgain(ctx, *r.op.request, r.op.Plan, done); err != nil {
		return err
	}
	r.tell(Replanned, Event{Operation: r.op})
	return nil
}

// planAgainAfterHooks makes the plan again if hooks have run before the first object's turn; those of tests change no object of the release.
func (r *run) planAgainAfterHooks(ctx context.Context) error {
	if len(r.op.Hooks.Before) == 0 || r.op.request == nil {
		return nil
	}
	return r.planAgain(ctx, 0)
}

// ranProgram reports whether waves make something that runs and comes to its end: it may change other objects.
func ranProgram(waves []apply.Wave) bool {
	for _, wave := range waves {
		for _, c := range wave.Changes {
			if c.Action != decide.Unchanged && c.Action != decide.Keep && kube.RunsToEnd(c.ID.GroupKind()) {
				return true
			}
		}
	}
	return false
}

// lookOnceMore fails if an object that was applied isn't there any more. What may have been deleted by a Job of the release is
// made again, once.
func (r *run) lookOnceMore(ctx context.Context) error {
	gone, err := r.vanished(ctx)
	isProgram := func(id kube.ID) bool { return kube.RunsToEnd(id.GroupKind()) }
	mayBeOurs := r.op.request != nil && ranProgram(r.op.Plan.Waves) && !slices.ContainsFunc(gone, isProgram)
	if err == nil && len(gone) > 0 && mayBeOurs {
		done := len(r.op.Plan.Waves)
		if len(r.op.Plan.Last()) > 0 {
			done-- // its turn is still to come
		}
		for i := range r.op.Plan.Waves {
			wave := &r.op.Plan.Waves[i]
			isGone := func(c apply.Change) bool { return slices.Contains(gone, c.ID) }
			wave.Changes = slices.DeleteFunc(slices.Clone(wave.Changes), isGone) // who was told of them may keep them
		}
		err = r.inSequence(ctx,
			func() error { return r.planAgain(ctx, done) },
			func() error { return r.applyWaves(ctx, done) },
			func() error { return r.waitUntilReady(ctx) },
			func() (err error) { gone, err = r.vanished(ctx); return err },
		)
	}
	if err == nil && len(gone) > 0 {
		err = program.WithHint(fmt.Errorf("another client has deleted %s since it was applied", strings.Join(finding.IDs(gone).Names(), ", ")),
			"find out who deletes it (the audit log of the API server says so), then deploy again: that creates it")
	}
	return err
}

// vanished returns the objects that were applied and aren't there any more. If nothing was changed, all have been seen just now.
func (r *run) vanished(ctx context.Context) (gone []kube.ID, err error) {
	applied := slices.DeleteFunc(r.appliedInOrder(), func(c *apply.Change) bool {
		return c.Applied == nil || kube.IsDeletedWhenFinished(c.Applied) || c.Applied.GetDeletionTimestamp() != nil
	})
	if !slices.ContainsFunc(applied, func(c *apply.Change) bool { return c.Action != decide.Unchanged }) {
		return nil, nil
	}
	ctx, end := LimitStep(ctx, StepObserve, r.d.Settings.Timeout)
	defer func() { err = end(err) }()
	return r.applier.Vanished(ctx, applied)
}
