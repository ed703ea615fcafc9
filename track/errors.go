package track

import (
	"fmt"
	"strings"
	"time"

	"deployer/internal/kube"
)

// A Cause is one root of a failure. Objects that fail for the same reason
// share one: the same missing image of seven Deployments is one cause.
type Cause struct {
	Fatal   bool      // false: not final when the wait ended
	Objects []kube.ID // that fail for this reason; the first is the example
	Problem Problem   // of the example, with its events and logs
	Rollout *Rollout  // of the example; nil when it isn't a workload
	// Blocks are objects that are not ready because of the Objects.
	Blocks []kube.ID
	// BeforeRelease marks a failure that was there before the release, which changed
	// nothing about the object.
	BeforeRelease bool
}

// FailedError says that some objects can't become ready any more.
type FailedError struct {
	Causes []Cause // fatal ones first, at least one
	Waited time.Duration
}

func (e *FailedError) Error() string {
	lines := make([]string, 0, len(e.Causes))
	for _, c := range e.Causes {
		if c.Fatal {
			lines = append(lines, c.Objects[0].String()+andMore(len(c.Objects)-1)+": "+c.Problem.text())
		}
	}
	return strings.Join(lines, "\n")
}

// andMore follows the first of several names.
func andMore(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// TimeoutError says that time was up, or that the wait was cancelled.
type TimeoutError struct {
	Causes   []Cause  // what held the objects up, as far as it is known
	NotReady []Status // every target that isn't ready
	Total    int      // of targets
	Goal     State    // of the targets: Gone when all were to go, else Ready
	Waited   time.Duration
	Err      error // the context's error, with its cause
}

func (e *TimeoutError) Error() string {
	var text strings.Builder
	are := "are"
	if len(e.NotReady) == 1 {
		are = "is"
	}
	fmt.Fprintf(&text, "%d of %d objects %s not %s after %s:", len(e.NotReady), e.Total, are, e.Goal, e.Waited.Round(100*time.Millisecond))
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
