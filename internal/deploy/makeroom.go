package deploy

import (
	"context"
	"slices"
	"sync"
	"time"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/internal/kube"
	"deployer/track"
	"deployer/track/class"
)

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
	go func() {
		ended <- r.trackBy(ctx, targets, func(e track.Event) {
			stuck.note(e)
			r.emit(Event{Event: e})
		})
	}()
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

// stuckObjects are the objects that lack something that others may have, and why.
type stuckObjects struct {
	mu    sync.Mutex
	lacks map[kube.ID]track.Finding
}

// note takes in what has happened to an object.
func (s *stuckObjects) note(e track.Event) {
	id, f := e.Status.ID, e.Status.Finding
	shortages := []track.Class{class.Unschedulable, class.NoNodeFits, class.QuotaExceeded, class.QuotaDeadlock, class.MultiAttach, class.ResourceClaimUnallocated}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !e.Kind.IsStatus():
	case f == nil || e.Status.State.IsFinal() || !slices.Contains(shortages, f.Class):
		delete(s.lacks, id)
	default:
		s.lacks[id] = *f
	}
}

// overdue returns what objects lack that have been stuck for long enough.
func (s *stuckObjects) overdue() map[kube.ID]decide.Shortage {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[kube.ID]decide.Shortage{}
	for id, f := range s.lacks {
		lack, limit := decide.Shortage{Message: f.Message}, patience
		if lack.IsOfNodes() {
			limit = nodePatience
		}
		if time.Since(f.Since) > limit {
			out[id] = lack
		}
	}
	return out
}
