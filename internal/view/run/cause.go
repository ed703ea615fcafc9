package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"deployer/apply"
	"deployer/internal/deploy"
	"deployer/internal/kube"
	"deployer/internal/view/output"
	"deployer/internal/view/page"
	"deployer/internal/view/textfmt"
	"deployer/release"
	"deployer/track"
	"deployer/track/class"
)

// A Cause is one root cause of a failure, with all that helps to fix it.
type Cause struct {
	Class   class.Class `json:"class"` // of package class, or one of those below
	Title   string      `json:"title" text:"free"`
	Fatal   bool        `json:"fatal"`
	Objects []string    `json:"objects"`
	Message string      `json:"message,omitempty" text:"free"`
	Hook    string      `json:"hook,omitempty"` // event and template of the hook it happened in

	FailingPods
	Suspect  string `json:"suspect_node,omitempty"`
	Attempts int    `json:"attempts,omitempty"`
	Limit    int    `json:"attempts_limit,omitempty"`
	ExitCode *int32 `json:"exit_code,omitempty"` // of the container
	Reason   string `json:"reason,omitempty"`    // of its termination

	Since         string       `json:"since,omitempty"` // when it was first seen
	Impact        string       `json:"impact,omitempty" text:"free"`
	Changed       []string     `json:"changed,omitempty" text:"free"` // by this release, in what fails
	Source        string       `json:"source,omitempty"`              // template
	Advice        string       `json:"advice,omitempty" text:"free"`
	Blocks        []string     `json:"blocks,omitempty"`
	BeforeRelease bool         `json:"before_release,omitempty"` // it failed before, and nothing about it was changed
	Events        []CauseEvent `json:"events,omitempty"`
	Logs          []CauseLog   `json:"logs,omitempty"`
	Next          []Suggestion `json:"next,omitempty"`

	lasted time.Duration // since then, when the run ended
}

// FailingPods are pods that have a problem, and which container of them.
type FailingPods struct {
	Container string   `json:"container,omitempty"`
	Image     string   `json:"image,omitempty"`
	Pods      []string `json:"pods,omitempty"`
	PodCount  int      `json:"pod_count,omitempty"`
	PodTotal  int      `json:"pod_total,omitempty"`
	Nodes     []string `json:"nodes,omitempty"`
}

func failingPods(p track.Problem) FailingPods {
	return FailingPods{Container: p.Container, Image: p.Image, Pods: p.Pods, PodCount: p.PodCount, PodTotal: p.PodTotal, Nodes: p.Nodes}
}

// The classes of causes beside those of package class, which are problems of objects.
const (
	classApplyFailed    class.Class = "apply_failed"
	classRejected       class.Class = "rejected"
	classStayed         class.Class = "stayed" // it can't go back, and all others have
	classHookFailed     class.Class = "hook_failed"
	classAPIUnreachable class.Class = "api_lost"
	classStopped        class.Class = "stopped"
	classError          class.Class = "error" // any other
)

// A CauseEvent is a Kubernetes event.
type CauseEvent struct {
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message" text:"free"`
	Object  string `json:"object,omitempty"`
	Count   int    `json:"count,omitempty"`
	Last    string `json:"last,omitempty"`
}

// A CauseLog is the end of a container's log.
type CauseLog struct {
	Pod               string   `json:"pod"`
	Container         string   `json:"container"`
	Previous          bool     `json:"previous,omitempty"`
	Lines             []string `json:"lines" text:"free"`
	UnavailableReason string   `json:"why,omitempty" text:"free"` // there are none
}

// A Suggestion is something to do, and the command for it if there is one.
type Suggestion struct {
	What    string `json:"what"`
	Command string `json:"command,omitempty" text:"command"`
	about   string // what it needs: a pod, an object, or the failed run; empty for none of them
}

// The verdicts on runs that didn't succeed, as their reports have them.
const (
	verdictFailed   = "FAILED"
	verdictRejected = "REJECTED"
	verdictTimedOut = "TIMED OUT"
	verdictStopped  = "STOPPED" // a signal has ended it
)

// A causeCollector takes the causes out of an error.
type causeCollector struct {
	state   *runState
	causes  []Cause
	verdict string
	hook    *deploy.HookError
}

// collect finds at least one cause in err.
func (c *causeCollector) collect(err error) {
	c.verdict = verdictFailed
	if !c.walk(err) {
		c.plain(err)
	}
	if c.verdict == verdictFailed && c.state.neverBegan() {
		c.verdict = verdictRejected
	}
	if len(c.causes) > 0 && c.verdict != verdictRejected && !overtaken(err) && !errors.As(err, new(*apply.StayedError)) {
		c.causes[0].Next = append(c.causes[0].Next, c.state.undoSuggestion(c.causes[0].BeforeRelease)...)
	}
}

// overtaken reports whether another run has the release now: a rollback would undo what that one does.
func overtaken(err error) bool {
	return errors.As(err, new(*release.LockLostError)) || errors.As(err, new(*release.HistoryChangedError))
}

// walk reports whether it found an error that it knows.
func (c *causeCollector) walk(err error) bool {
	switch e := err.(type) {
	case nil:
		return false
	case *deploy.RolledBackError:
		return c.walk(e.Cause)
	case *deploy.HookError:
		return c.inHook(e)
	case *track.FailedError:
		c.tracked(e.Causes)
		return len(e.Causes) > 0
	case *track.TimeoutError:
		c.timeout(e)
		return true
	case *track.UnreachableError:
		c.append(Cause{Class: classAPIUnreachable, Title: "API server unreachable", Fatal: true, Message: e.Error(), Advice: e.Hint()})
		return true
	case *apply.RejectedError:
		title := "Rejected by the API server"
		if !e.Late {
			c.verdict, title = verdictRejected, "Rejected before the first change"
		}
		for _, r := range e.Rejections {
			c.add(classRejected, title, r.ID, r.Source, r.Err)
		}
		return true
	case *release.PendingError, *release.BusyError:
		c.verdict = verdictRejected
		c.append(Cause{Class: classError, Title: "Another run may be at work", Fatal: true, Message: err.Error(), Advice: output.Hint(err)})
		return true
	case *apply.StayedError:
		for _, r := range e.Objects {
			c.add(classStayed, "Can't go back", r.ID, r.Source, r.Err)
		}
		return true
	case *apply.ObjectError:
		c.add(classApplyFailed, textfmt.Capitalized(e.Doing)+" failed", e.ID, e.Source, e.Err)
		return true
	case interface{ Unwrap() []error }:
		errs := e.Unwrap()
		for _, err := range errs {
			if err != nil && !c.walk(err) {
				c.plain(err)
			}
		}
		return len(errs) > 0
	case interface{ Unwrap() error }:
		return c.walk(e.Unwrap())
	}
	return false
}

// plain makes a cause of an error that isn't known: of its message.
func (c *causeCollector) plain(err error) {
	cause := Cause{Class: classError, Title: "The run failed", Fatal: true, Message: err.Error(), Advice: output.Hint(err)}
	if errors.Is(err, context.Canceled) {
		if slices.ContainsFunc(c.causes, func(c Cause) bool { return c.Class == classStopped }) {
			return // each request under way ends with the same signal
		}
		cause.Class, cause.Title, c.verdict = classStopped, "The run was stopped", verdictStopped
	}
	c.append(cause)
}

// add makes a cause of a failure at one object. Failures of the same kind with
// the same words are one cause.
func (c *causeCollector) add(of class.Class, title string, id kube.ID, source string, err error) {
	message := err.Error()
	for i := range c.causes {
		if known := &c.causes[i]; known.Class == of && known.Message == message && known.Title == title {
			known.Objects = append(known.Objects, id.String())
			return
		}
	}
	c.append(Cause{Class: of, Title: title, Fatal: true, Objects: []string{id.String()}, Message: message, Source: source, Advice: output.Hint(err)})
}

// inHook collects the causes of a failed hook.
func (c *causeCollector) inHook(e *deploy.HookError) bool {
	c.hook = e
	defer func() { c.hook = nil }()
	if !c.walk(e.Err) {
		c.plain(e.Err)
		last := &c.causes[len(c.causes)-1]
		if last.Class == classError {
			last.Class, last.Title = classHookFailed, "Hook failed"
		}
	}
	return true
}

// append adds a cause, with the hook in which it happened.
func (c *causeCollector) append(cause Cause) {
	if c.hook != nil {
		cause.Hook = fmt.Sprintf("%s hook %s", c.hook.Event, c.hook.Hook)
		cause.Source = c.hook.Hook
		if cause.Impact == beforeChange && !strings.HasPrefix(string(c.hook.Event), "pre-") {
			cause.Impact = "" // after the change, or there was none to come
		}
	}
	c.causes = append(c.causes, cause)
}

func (c *causeCollector) tracked(causes []track.Cause) {
	for _, from := range causes {
		c.append(c.state.cause(from))
	}
}

// timeout adds to the known causes what else is not ready.
func (c *causeCollector) timeout(e *track.TimeoutError) {
	c.verdict = verdictTimedOut
	if errors.Is(e.Err, context.Canceled) {
		c.verdict = verdictStopped
	}
	alreadyNamed := map[string]bool{}
	c.tracked(e.Causes)
	for _, cause := range c.causes {
		for _, o := range append(cause.Objects, cause.Blocks...) {
			alreadyNamed[o] = true
		}
	}
	of, title := class.Timeout, fmt.Sprintf("Not %s in time", e.Goal)
	if c.verdict == verdictStopped {
		of, title = classStopped, fmt.Sprintf("Not %s when the run was stopped", e.Goal)
	}
	for _, s := range e.NotReady {
		if alreadyNamed[s.ID.String()] {
			continue
		}
		if s.Problem != nil {
			c.tracked([]track.Cause{{Objects: []kube.ID{s.ID}, Problem: *s.Problem, Rollout: s.Rollout}})
			continue
		}
		change := c.state.changes[s.ID]
		message := s.Message
		if s.Waited > 0 {
			message = strings.TrimSpace(message + " (waited " + textfmt.Duration(s.Waited) + ")")
		}
		c.append(Cause{Class: of, Title: title, Fatal: of == class.Timeout, Objects: []string{s.ID.String()}, Message: message,
			Source: change.source, Changed: changesToBlame(change.update, "", of, c.state.op.Hidden), Next: suggestions(of, s.ID, track.Problem{})})
	}
}

// cause completes a cause of tracking by what the release changed in the object.
func (t *runState) cause(from track.Cause) Cause {
	p := from.Problem
	watching := t.op.Verb == deploy.Watch // nothing is being released
	from.BeforeRelease = from.BeforeRelease && !watching
	out := Cause{
		Class: p.Class, Title: p.Title, Fatal: from.Fatal, Message: p.Message, BeforeRelease: from.BeforeRelease,
		FailingPods: failingPods(p), Suspect: p.SuspectNode, Attempts: p.Attempts, Limit: p.Limit, ExitCode: p.ExitCode, Reason: p.Reason, Advice: p.Advice,
		Objects: namesOf(from.Objects), Blocks: namesOf(from.Blocks), Since: page.Timestamp(p.Since),
	}
	if !p.Since.IsZero() {
		out.lasted = t.now().Sub(p.Since)
	}
	for _, e := range p.Events {
		out.Events = append(out.Events, CauseEvent{
			Type: e.Type, Reason: e.Reason, Message: e.Message, Object: e.Object, Count: e.Count, Last: page.Timestamp(e.Last),
		})
	}
	for _, l := range p.Logs {
		l.Lines = append([]string{}, l.Lines...) // an empty list, not null
		out.Logs = append(out.Logs, CauseLog(l))
	}
	id := from.Objects[0]
	change := t.changes[id]
	out.Source = change.source
	if out.Impact = t.impact(from, change); watching && out.Impact == newObject {
		out.Impact = nothingAvailable
	}
	out.Changed = changesToBlame(change.update, p.Container, p.Class, t.op.Hidden)
	out.Next = suggestions(p.Class, id, p)
	return out
}

func namesOf(ids []kube.ID) []string {
	var out []string
	for _, id := range ids {
		out = append(out, id.String())
	}
	return out
}

// impact says how much of a failed object still works.
func (t *runState) impact(from track.Cause, change changeSummary) string {
	r := from.Rollout
	switch {
	case from.BeforeRelease:
		return "it failed before this release, which didn't change it"
	case t.isHook(from.Objects[0]) && t.nothingChanged():
		return beforeChange
	case r == nil:
		return ""
	case r.OldServing > 0:
		return fmt.Sprintf("rollout stopped at %d of %d updated; the old revision still serves with %s", r.NewReady, r.Desired, textfmt.Count(r.OldServing, "pod"))
	case r.Available > 0:
		return fmt.Sprintf("%d of %d pods are available", r.Available, r.Desired)
	case !change.existed:
		return newObject
	}
	return nothingAvailable
}

const (
	beforeChange     = "it failed before the release changed anything"
	newObject        = "it is new and serves nothing yet"
	nothingAvailable = "nothing of it is available"
)
