package track

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// collectCausesFor is how long other causes are collected after the first failure. What may still heal then is reported beside
// those that failed.
const collectCausesFor = 500 * time.Millisecond

// outcome reports whether the wait is over, and its error.
func (w *wait) outcome(ctx context.Context, now time.Time) (bool, error) {
	if err := cmp.Or(w.fatal, w.health.failure(now)); err != nil {
		return true, err
	}
	hasFailed := !w.failedAt.IsZero()
	if !w.isFinished() && !(hasFailed && now.Sub(w.failedAt) >= collectCausesFor) {
		return false, nil
	}
	w.logs.finish()
	if !hasFailed {
		return true, nil
	}
	d := diagnosis{session: w.session}
	d.addEvidence(ctx)
	return true, &FailedError{Causes: d.causes(), Waited: now.Sub(w.startedAt)}
}

// outOfTime returns the outcome after the caller's context has ended. A cancelled wait ends
// at once; after a deadline, logs and events are still read.
func (w *wait) outOfTime(ctx context.Context) error {
	err := context.Cause(ctx)
	if ctxErr := ctx.Err(); !errors.Is(err, ctxErr) {
		err = fmt.Errorf("%w: %w", ctxErr, err)
	}
	expired := errors.Is(ctx.Err(), context.DeadlineExceeded)
	w.tasks.drain()
	now := w.opts.Now()
	for _, obj := range w.objects {
		if obj.schedule.isDue {
			w.updateStatus(obj, now)
		}
	}
	for _, obj := range w.objects {
		if expired && obj.waiveStability() {
			w.updateStatus(obj, now)
		}
		if !obj.status.State.IsFinal() {
			obj.status.Waited = obj.clock.at(now).Sub(obj.timers.appliedAt)
		}
	}
	if w.isFinished() && w.failedAt.IsZero() {
		return nil
	}
	d := diagnosis{session: w.session, timedOut: expired && w.failedAt.IsZero()}
	if expired {
		d.addEvidence(context.WithoutCancel(ctx))
	}
	if !w.failedAt.IsZero() {
		return &FailedError{Causes: d.causes(), Waited: now.Sub(w.startedAt)}
	}
	goal := Ready
	if allAwaitDeletion(w.objects) {
		goal = Gone
	}
	return &TimeoutError{Causes: d.causes(), NotReady: w.unready(), Total: len(w.objects), Goal: goal, Waited: now.Sub(w.startedAt), Err: err}
}

// isFinished reports whether the status of all objects is final that are waited for.
func (w *wait) isFinished() bool { return !slices.ContainsFunc(w.objects, (*trackedObject).isAwaited) }

// unready returns the statuses of objects that haven't reached the goal, failed ones first.
func (w *wait) unready() []Status {
	var failed, other []Status
	for _, obj := range w.objects {
		switch {
		case obj.status.State == Failed:
			failed = append(failed, obj.status)
		case obj.isAwaited():
			other = append(other, obj.status)
		}
	}
	return append(failed, other...)
}
