package track

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"deployer/track/finding"
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

// FailedError says that some objects can't become ready any more.
type FailedError struct {
	Causes []Finding // root causes: fatal ones first, at least one
	Waited time.Duration
}

func (e *FailedError) Error() string {
	lines := make([]string, 0, len(e.Causes))
	for _, c := range e.Causes {
		if c.Fatal {
			lines = append(lines, c.Objects[0].String()+finding.AndMore(len(c.Objects)-1)+": "+c.Text())
		}
	}
	return strings.Join(lines, "\n")
}

// TimeoutError says that time was up, or that the wait was cancelled.
type TimeoutError struct {
	Causes   []Finding // what held the objects up, as far as it is known
	NotReady []Status  // every target that isn't ready
	Total    int       // of targets
	Goal     State     // of the targets: Gone when all were to go, else Ready
	Waited   time.Duration
	Err      error // the context's error, with its cause
}

func (e *TimeoutError) Error() string {
	var text strings.Builder
	what := fmt.Sprintf("%d of %d objects are", len(e.NotReady), e.Total)
	switch {
	case e.Total == 1:
		what = "the object is"
	case len(e.NotReady) == 1:
		what = fmt.Sprintf("1 of %d objects is", e.Total)
	}
	fmt.Fprintf(&text, "%s not %s after %s:", what, e.Goal, e.Waited.Round(100*time.Millisecond))
	for _, s := range e.NotReady {
		fmt.Fprintf(&text, "\n  %s: %s", s.ID, s.Message)
	}
	return text.String()
}

// Unwrap returns the context's error.
func (e *TimeoutError) Unwrap() error { return e.Err }

// UnreachableError says that tracking ended because the API server was unreachable.
// The rollout itself may go on.
type UnreachableError struct {
	For time.Duration
	Err error // the last answer
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the API server was unreachable for %s: %v", e.For.Round(time.Second), e.Err)
}

// Unwrap returns the last answer of the connection.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Hint says what to do about it.
func (e *UnreachableError) Hint() string {
	return "the rollout continues in the cluster; check it when the API server is back"
}
