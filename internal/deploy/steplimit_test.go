package deploy

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestStepOutOfTimeIsAnErrorThatEnds: the errors of requests have the cause of their
// context in them, and walking through them has to come to an end.
func TestStepOutOfTimeIsAnErrorThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, over := LimitStep(t.Context(), "planning", time.Second)
		<-ctx.Done()
		err := over(fmt.Errorf("asking the cluster: %w", context.Cause(ctx)))
		var late *StepTimeoutError
		if !errors.As(err, &late) || errors.Is(err, context.Canceled) {
			t.Fatalf("over = %v, want a *LateError", err)
		}
		if want := "planning took more than 11s: asking the cluster: time is up"; err.Error() != want {
			t.Errorf("over = %q, want %q", err, want)
		}
	})
}
