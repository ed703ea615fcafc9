package track

import (
	"fmt"
	"strings"
	"time"

	"deployer/track/finding"
)

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
