package main

import (
	"fmt"
	"testing"

	"deployer/apply"
)

// Exit code 3 promises that nothing was changed.
func TestRejectionsAfterAChangeAreFailures(t *testing.T) {
	for _, c := range []struct {
		late bool
		want int
	}{{false, exitRejected}, {true, exitFailed}} {
		err := fmt.Errorf("UPGRADE FAILED: %w", &apply.RejectedError{Late: c.late})
		if got := exitCodeOf(t.Context(), err); got != c.want {
			t.Errorf("late %t: exit code %d, want %d", c.late, got, c.want)
		}
	}
}
