package deploy

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

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
	stuck := &stuckObjects{shortages: map[kube.ID]shortage{}}
	ended := make(chan error, 1)
	go func() {
		ended <- r.tracker.Wait(ctx, targets, func(report track.Report) {
			stuck.note(report)
			r.emit(Tracked{Report: report})
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
		for id, message := range stuck.overdue() {
			changes := r.op.Plan.TakeWhatIsShort(id, decide.Shortage{Message: message})
			if err := r.applier.Prune(ctx, changes, r.reportApplied(StepPrune)); err != nil && ctx.Err() == nil {
				cancel()
				<-ended
				return err
			}
		}
	}
}

// stuckObjects are the objects that lack something that others may have.
type stuckObjects struct {
	mu        sync.Mutex
	shortages map[kube.ID]shortage
}

type shortage struct {
	since   time.Time
	message string
}

// note takes in what is reported of an object.
func (s *stuckObjects) note(report track.Report) {
	id, f := report.Status.ID, report.Status.Finding
	lacks := []track.Class{class.Unschedulable, class.NoNodeFits, class.QuotaExceeded, class.QuotaDeadlock, class.MultiAttach, class.ResourceClaimUnallocated}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch known, isStuck := s.shortages[id]; {
	case report.Kind != track.StatusChanged && report.Kind != track.ProblemSeen && report.Kind != track.Recovered:
	case f == nil || report.Status.State.IsFinal() || !slices.Contains(lacks, f.Class):
		delete(s.shortages, id)
	case isStuck:
		s.shortages[id] = shortage{known.since, f.Message}
	default:
		s.shortages[id] = shortage{time.Now(), f.Message}
	}
}

// overdue returns the objects that have been stuck for long enough, and what each lacks.
func (s *stuckObjects) overdue() map[kube.ID]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[kube.ID]string{}
	for id, lack := range s.shortages {
		limit := patience
		if strings.Contains(lack.message, "Insufficient") {
			limit = nodePatience
		}
		if time.Since(lack.since) > limit {
			out[id] = lack.message
		}
	}
	return out
}
