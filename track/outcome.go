package track

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// collectCausesFor is how long other causes are collected after the first failure.
const collectCausesFor = 2 * time.Second

// outcome reports whether the wait is over, and its error.
func (s *session) outcome(ctx context.Context, now time.Time) (bool, error) {
	if s.progress.fatal != nil {
		return true, s.progress.fatal
	}
	if err := s.health.failure(now); err != nil {
		return true, err
	}
	waiting := s.countUnfinished()
	switch {
	case waiting == 0 && s.progress.failedAt.IsZero():
		s.logs.finish()
		return true, nil
	case s.progress.failedAt.IsZero():
		return false, nil
	case waiting == 0, now.Sub(s.progress.failedAt) >= collectCausesFor:
		s.logs.finish()
		diagnosis{s}.addEvidence(ctx)
		return true, &FailedError{Causes: diagnosis{s}.causes(), Waited: now.Sub(s.progress.startedAt)}
	}
	return false, nil
}

// outOfTime returns the outcome after the caller's context has ended. A cancelled wait ends
// at once; after a deadline, logs and events are still read.
func (s *session) outOfTime(ctx context.Context) error {
	err := context.Cause(ctx)
	if ctxErr := ctx.Err(); !errors.Is(err, ctxErr) {
		err = fmt.Errorf("%w: %w", ctxErr, err)
	}
	s.tasks.drain()
	now := s.opts.Now()
	for obj := range s.dirty {
		s.updateStatus(obj, now)
	}
	for _, obj := range s.objects {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) && obj.waiveStability() {
			s.updateStatus(obj, now)
		}
		if !obj.status.State.IsFinal() {
			obj.status.Waited = now.Sub(obj.timers.appliedAt)
		}
	}
	if s.countUnfinished() == 0 && s.progress.failedAt.IsZero() {
		return nil
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		s.progress.timedOut = s.progress.failedAt.IsZero()
		diagnosis{s}.addEvidence(context.WithoutCancel(ctx))
	}
	if !s.progress.failedAt.IsZero() {
		return &FailedError{Causes: diagnosis{s}.causes(), Waited: now.Sub(s.progress.startedAt)}
	}
	return &TimeoutError{Causes: diagnosis{s}.causes(), NotReady: s.unready(), Total: len(s.objects), Goal: s.goal(), Waited: now.Sub(s.progress.startedAt), Err: err}
}

// countUnfinished counts the objects whose status isn't final, without background ones.
func (s *session) countUnfinished() int {
	n := 0
	for _, obj := range s.objects {
		if !obj.status.State.IsFinal() && !obj.settings.isBackground() {
			n++
		}
	}
	return n
}

// goal is the state that the targets are expected to reach.
func (s *session) goal() State {
	if allAwaitDeletion(s.objects) {
		return Gone
	}
	return Ready
}

// unready returns the statuses of objects that haven't reached the goal, failed ones first.
func (s *session) unready() []Status {
	var failed, other []Status
	for _, obj := range s.objects {
		switch {
		case obj.status.State == Failed:
			failed = append(failed, obj.status)
		case !obj.status.State.IsFinal() && !obj.settings.isBackground():
			other = append(other, obj.status)
		}
	}
	return append(failed, other...)
}
