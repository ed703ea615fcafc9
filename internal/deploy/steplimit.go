package deploy

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// stepGrace is how much longer than one wait each step before the first change may
// take: reading the chart, deciding, locking. A timeout of a few seconds is about
// what is waited for, and planning on a busy cluster shall not fail for it.
const stepGrace = 10 * time.Second

// LimitStep bounds a step before the first change by the timeout of the waits and a
// little more; 0 doesn't bound it. The function ends it, and turns an error that
// comes from the bound into a *StepTimeoutError.
func LimitStep(ctx context.Context, step Step, timeout time.Duration) (context.Context, func(error) error) {
	if timeout <= 0 {
		return ctx, func(err error) error { return err }
	}
	limit := timeout + stepGrace
	// Not the *StepTimeoutError itself: the errors of requests have the cause in them, and it
	// would be in itself.
	late := errors.New("time is up")
	ctx, cancel := context.WithTimeoutCause(ctx, limit, late)
	return ctx, func(err error) error {
		defer cancel()
		if err == nil || context.Cause(ctx) != late {
			return err
		}
		return &StepTimeoutError{Step: step, Limit: limit, Err: err}
	}
}

// A StepTimeoutError says that a step took too long. Nothing has been changed.
type StepTimeoutError struct {
	Step  Step
	Limit time.Duration
	Err   error // what was under way
}

func (e *StepTimeoutError) Error() string {
	return fmt.Sprintf("%s took more than %s: %s", e.Step, e.Limit, e.Err)
}

// Unwrap gives what was under way.
func (e *StepTimeoutError) Unwrap() error { return e.Err }

// Hint says what decides how long it may take.
func (e *StepTimeoutError) Hint() string {
	return fmt.Sprintf("a server answers slowly or not at all; give it more time with a longer --timeout: each step before the first change may take that plus %s", stepGrace)
}
