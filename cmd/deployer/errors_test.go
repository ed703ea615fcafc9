package main

import (
	"fmt"
	"testing"

	"deployer/apply"
)

// Exit code 3 promises that nothing was changed.
func TestRejectionsAfterAChangeAreFailures(t *testing.T) {
	for _, c := range []struct {
		when apply.RejectedWhen
		want int
	}{{apply.BeforeChanges, exitRejected}, {apply.AfterHooks, exitFailed}, {apply.AfterChanges, exitFailed}, {apply.WhenChecked, exitFailed}} {
		err := fmt.Errorf("UPGRADE FAILED: %w", &apply.RejectedError{When: c.when})
		if got := exitCodeOf(t.Context(), err); got != c.want {
			t.Errorf("when %d: exit code %d, want %d", c.when, got, c.want)
		}
	}
}
