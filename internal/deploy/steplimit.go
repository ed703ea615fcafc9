package deploy

import (
	"context"
	"fmt"
	"time"

	"deployer/internal/kube"
)

// stepGrace is added to the timeout for each step before the first change: reading the
// chart, deciding, locking. A short timeout is meant for waits, and planning on a busy
// cluster must not fail because of it.
const stepGrace = 10 * time.Second

// LimitStep limits a step before the first change to timeout plus stepGrace; 0 means no
// limit. Call the returned function at the end of the step: it turns an error caused by
// the limit into a *StepTimeoutError.
func LimitStep(ctx context.Context, step Step, timeout time.Duration) (context.Context, func(error) error) {
	if timeout <= 0 {
		return kube.WithLimit(ctx, 0, nil)
	}
	limit := timeout + stepGrace
	return kube.WithLimit(ctx, limit, func(err error) error {
		return &StepTimeoutError{Step: step, Limit: limit, Err: err}
	})
}

// A StepTimeoutError says that a step that only reads took too long. Before the first change, nothing has been changed then.
type StepTimeoutError struct {
	Step  Step
	Limit time.Duration
	Err   error // the step's error
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
