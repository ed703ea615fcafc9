package track

import (
	"cmp"
	"strings"
	"time"

	"deployer/track/class"
	"deployer/track/rules"
)

const (
	// runningAgainFor is how long a container must run after a crash before the problem counts
	// as over. Without a probe the container looks ready as soon as it has started.
	runningAgainFor = 5 * time.Second
	toleratedCheck  = 10 * time.Second // until a failure that is tolerated is looked at again
)

// ownFailure makes a failure of the object itself final when it has lasted.
func (e *evaluation) ownFailure(c Class, message string) Status {
	return e.failureStatus(rules.Verdict{Phase: rules.Failed, Class: c, Message: message, Grace: class.InfoOf(c).Grace})
}

func (e *evaluation) failureStatus(v rules.Verdict) Status {
	status := statusOf(v)
	p := status.Finding
	p.Since = cmp.Or(v.Since, e.obj.timers.since(v.Class, e.now))
	if v.Attempts > 0 {
		p.Attempts, p.Limit = v.Attempts, class.InfoOf(v.Class).Attempts
	}
	p.FinalAt = ownFinalAt(v, p.Since)
	if !p.IsFinal(e.now) {
		status.State = Progressing
		e.checkBy(p.FinalAt)
	}
	if found := e.podProblem(); found != nil && status.State == Failed && v.Class == class.ProgressDeadline {
		// The pods say more than the controller.
		found.Message = strings.TrimSuffix(v.Message, ".") + "; " + found.TextWithPods()
		found.Class, found.Title, found.FinalAt = p.Class, p.Title, p.FinalAt
		status.Finding = found
	}
	return status
}

// addProblem sets the worst problem of a workload that isn't ready, and fails it if that
// problem is final.
func (e *evaluation) addProblem(status *Status) {
	problem := worse(e.creationProblem(status.Rollout), e.podProblem())
	problem = worse(problem, e.oldPodProblem(problem))
	if problem != nil {
		e.obj.timers.runningAgainSince = time.Time{}
	} else if problem = e.recentCrash(); problem == nil {
		return
	}
	status.Finding = problem
	status.Message = strings.TrimPrefix(status.Message+"; "+problem.TextWithPods(), "; ")
	if problem.IsFinal(e.now) {
		status.State = Failed
	} else {
		e.checkBy(problem.FinalAt)
	}
}

// recentCrash returns the last crash while all containers have run for less than
// runningAgainFor since; otherwise nil.
func (e *evaluation) recentCrash() *Finding {
	p := e.obj.status.Finding
	if p == nil || !class.InfoOf(p.Class).Ran {
		return nil
	}
	e.obj.timers.runningAgainSince = cmp.Or(e.obj.timers.runningAgainSince, e.now)
	at := e.obj.timers.runningAgainSince.Add(runningAgainFor)
	if !e.now.Before(at) {
		return nil
	}
	e.checkBy(at)
	crash := *p
	crash.Since, crash.FinalAt = e.obj.clock.at(crash.Since), time.Time{}
	return &crash
}

// worse returns the problem that becomes final sooner, or a if neither does; nil is none.
func worse(a, b *Finding) *Finding {
	if a == nil || b != nil && !b.FinalAt.IsZero() && (a.FinalAt.IsZero() || b.FinalAt.Before(a.FinalAt)) {
		return b
	}
	return a
}

// failIfStalled fails an object that has made no progress for too long, or whose own
// timeout is over.
func (e *evaluation) failIfStalled(status *Status, v rules.Verdict) {
	if own := e.obj.settings.timeout; own > 0 {
		e.failAfter(status, class.Timeout, e.obj.timers.appliedAt.Add(own), "not ready after "+own.String())
	}
	if limit, from, limited := e.progressLimit(v); limited {
		e.failAfter(status, class.NoProgress, from.Add(limit), "no progress for "+limit.String())
	}
}

// failAfter fails an object at a time, for what it is waiting for then.
func (e *evaluation) failAfter(status *Status, c Class, at time.Time, what string) {
	if status.State == Failed {
		return
	}
	if e.now.Before(at) {
		e.checkBy(at)
		return
	}
	var p Finding
	reason := status.Message
	if status.Finding != nil {
		p = *status.Finding
		reason = cmp.Or(p.Message, p.Title)
	}
	if reason != "" {
		what += ": " + reason
	}
	p.Class, p.Title, p.Message, p.Since, p.FinalAt = c, class.InfoOf(c).Title, what, e.obj.timers.progressedAt, at
	status.State, status.Finding, status.Message = Failed, &p, what
}

// applyFailMode applies what the user wants to happen on failure.
func (e *evaluation) applyFailMode(status *Status) {
	mode := e.obj.settings.failMode
	switch {
	case status.State != Failed:
	case mode == failModeWarn || mode == failModeIgnore:
		status.State, status.Unverified = Ready, true
		status.Notes = append(status.Notes, "failed (tolerated): "+status.Message)
	case e.isTolerated(status.Finding):
		status.State = Progressing
		e.checkBy(e.now.Add(toleratedCheck))
	}
}
