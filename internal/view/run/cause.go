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
	"deployer/internal/view/textfmt"
	"deployer/release"
	"deployer/track"
	"deployer/track/class"
	"deployer/track/finding"
)

// A Cause is one root cause of a failure: what was found, and what the run knows about it.
type Cause struct {
	track.Finding
	Hook    string       `json:"hook,omitempty"` // event and template of the hook it happened in
	Impact  string       `json:"impact,omitempty" text:"free"`
	Changed []string     `json:"changed,omitempty" text:"free"` // by this release, in what fails
	Source  string       `json:"source,omitempty"`              // template
	Next    []Suggestion `json:"next,omitempty"`

	lasted time.Duration // since it was first seen, when the run ended
}

// inUTC returns a finding with its times as documents have them: to the second, in UTC.
func inUTC(f track.Finding) track.Finding {
	f.Since, f.FinalAt = f.Since.UTC().Truncate(time.Second), f.FinalAt.UTC().Truncate(time.Second)
	f.Events = slices.Clone(f.Events)
	for i := range f.Events {
		f.Events[i].Last = f.Events[i].Last.UTC().Truncate(time.Second)
	}
	return f
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

// A Suggestion is something to do, and the command for it if there is one.
type Suggestion struct {
	What    string `json:"what"`
	Command string `json:"command,omitempty" text:"command"`
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
		c.append(causeOf(classAPIUnreachable, "API server unreachable", e))
		return true
	case *apply.RejectedError:
		title := "Rejected by the API server"
		if e.When == apply.BeforeChanges || e.When == apply.WhenChecked {
			c.verdict, title = verdictRejected, "Rejected before the first change"
		}
		for _, r := range e.Rejections {
			c.add(classRejected, title, r.ID, r.Source, r.Err)
		}
		return true
	case *release.PendingError, *release.BusyError:
		c.verdict = verdictRejected
		c.append(causeOf(classError, "Another run may be at work", err))
		return true
	case *apply.StayedError:
		for _, r := range e.Objects {
			c.add(classStayed, "Can't go back", r.ID, r.Source, r.Err)
		}
		return true
	case *apply.ObjectError:
		if c.onlyStopped(e) {
			return true
		}
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
	if c.onlyStopped(err) {
		return
	}
	cause := causeOf(classError, "The run failed", err)
	if errors.Is(err, context.Canceled) {
		cause.Class, cause.Title, c.verdict = classStopped, "The run was stopped", verdictStopped
	}
	c.append(cause)
}

// onlyStopped reports whether an error says once more that the run was stopped: each request under way ends with the same signal.
func (c *causeCollector) onlyStopped(err error) bool {
	return errors.Is(err, context.Canceled) && slices.ContainsFunc(c.causes, func(c Cause) bool { return c.Class == classStopped })
}

// add makes a cause of a failure at one object. Failures of the same kind with
// the same words are one cause.
func (c *causeCollector) add(of class.Class, title string, id kube.ID, source string, err error) {
	message := err.Error()
	for i := range c.causes {
		if known := &c.causes[i]; known.Class == of && known.Message == message && known.Title == title {
			known.Objects = append(known.Objects, id)
			return
		}
	}
	cause := causeOf(of, title, err)
	cause.Objects, cause.Source = []kube.ID{id}, source
	cause.Changed = c.state.changesToBlame(cause.Finding)
	c.append(cause)
}

// causeOf makes a cause of an error.
func causeOf(of class.Class, title string, err error) Cause {
	return Cause{Finding: track.Finding{Class: of, Title: title, Fatal: true, Message: err.Error(), Advice: output.Hint(err)}}
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

func (c *causeCollector) tracked(causes []track.Finding) {
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
	alreadyNamed := map[kube.ID]bool{}
	c.tracked(e.Causes)
	for _, cause := range c.causes {
		for _, o := range slices.Concat(cause.Objects, cause.Blocks) {
			alreadyNamed[o] = true
		}
	}
	of, title := class.Timeout, fmt.Sprintf("Not %s in time", e.Goal)
	if c.verdict == verdictStopped {
		of, title = classStopped, fmt.Sprintf("Not %s when the run was stopped", e.Goal)
	}
	for _, s := range e.NotReady {
		if alreadyNamed[s.ID] {
			continue
		}
		if s.Finding != nil {
			known := *s.Finding
			known.Objects, known.Rollout = []kube.ID{s.ID}, s.Rollout
			c.tracked([]track.Finding{known})
			continue
		}
		message := s.Message
		if s.Waited > 0 {
			message = strings.TrimSpace(message + " (waited " + textfmt.Duration(s.Waited) + ")")
		}
		cause := c.state.cause(track.Finding{Class: of, Title: title, Fatal: of == class.Timeout, Objects: []kube.ID{s.ID}, Message: message})
		if log := c.state.logs[s.ID]; log != nil { // that its container is to blame isn't known
			cause.Pods, cause.Container, cause.Logs = []string{log.Pod}, log.Container, []finding.Log{*log}
		}
		if cause.Impact != beforeChange || of != class.Timeout {
			cause.Impact = "" // nobody has looked at its pods
		}
		c.append(cause)
	}
}

// cause completes a cause of tracking by what the release changed in the object.
func (t *runState) cause(from track.Finding) Cause {
	watching := t.op.Verb == deploy.Watch // nothing is being released
	change, changed := t.changes[from.Objects[0]], t.changesToBlame(from)
	from.BeforeRelease = from.BeforeRelease && !watching && len(changed) == 0 // its pods may read what has changed
	out := Cause{Finding: inUTC(from), Source: change.Source, Impact: t.impact(from, change), Changed: changed}
	if watching && out.Impact == newObject {
		out.Impact = nothingAvailable
	}
	if !from.Since.IsZero() {
		out.lasted = t.now().Sub(from.Since)
	}
	return out
}

// impact says how much of a failed object still works.
func (t *runState) impact(from track.Finding, change apply.Change) string {
	r := from.Rollout
	switch {
	case from.BeforeRelease:
		return "it failed before this release, which didn't change it"
	case t.isHook(from.Objects[0]) && t.nothingChanged():
		return beforeChange
	case r == nil:
		return ""
	case r.OldServing > 0:
		return fmt.Sprintf("rollout stopped with %d of %d new pods ready; the old revision still serves with %s", r.NewReady, r.Desired, textfmt.Count(r.OldServing, "pod"))
	case r.Available > 0:
		return fmt.Sprintf("%d of %d pods are available", r.Available, r.Desired)
	case change.Live == nil:
		return newObject
	}
	return nothingAvailable
}

const (
	beforeChange     = "it failed before the release changed anything"
	newObject        = "it is new and serves nothing yet"
	nothingAvailable = "nothing of it is available"
)
