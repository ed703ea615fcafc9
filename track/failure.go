package track

import (
	"cmp"
	"strings"
	"time"

	"deployer/internal/kube"
	"deployer/track/class"
	"deployer/track/rules"
)

const (
	defaultNoProgress   = 10 * time.Minute // the API server's default of progressDeadlineSeconds
	controllerHeadStart = 15 * time.Second // gives the Deployment controller time to report its own, more precise failure
)

// ownFailure makes a failure of the object itself final when it has lasted.
func (e *evaluation) ownFailure(c Class, message string) Status {
	return e.failureStatus(rules.Verdict{Phase: rules.Failed, Class: c, Message: message, Grace: class.InfoOf(c).Grace})
}

func (e *evaluation) failureStatus(v rules.Verdict) Status {
	status := statusOf(v)
	p := status.Finding
	p.Since = cmp.Or(v.Since, e.obj.timers.since(v.Class, e.now))
	limit := class.InfoOf(v.Class).Attempts
	if v.Attempts > 0 {
		p.Attempts, p.Limit = v.Attempts, limit
	}
	isOftenEnough := v.Attempts == 0 || v.Attempts >= limit // what nobody counts is final after its time alone
	if isOftenEnough {
		p.FinalAt = p.Since.Add(v.Grace)
	}
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

// runningAgainFor is how long a container must run after a crash before the problem counts
// as over. Without a probe the container looks ready as soon as it has started.
const runningAgainFor = 5 * time.Second

// recentCrash returns the last crash while all containers have run for less than
// runningAgainFor since; otherwise nil.
func (e *evaluation) recentCrash() *Finding {
	p := e.obj.status.Finding
	if p == nil || !runFailures.Has(p.Class) {
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
	if e.obj.settings.timeout > 0 {
		e.failAfter(status, class.Timeout, e.obj.timers.appliedAt.Add(e.obj.settings.timeout), "not ready after "+e.obj.settings.timeout.String())
	}
	// Negative timeouts of the user count as none, that of a rule as no limit.
	stated, ofRun := max(0, e.obj.settings.noProgressTimeout), max(0, e.obj.opts.NoProgressTimeout)
	if e.obj.gk == kube.DeploymentKind {
		stated = cmp.Or(stated, ofRun) // every Deployment has a deadline: the API server sets one
	}
	limit := cmp.Or(stated, v.NoProgress, ofRun, defaultNoProgress)
	workloads := e.workloads()
	if limit < 0 || workloads.Busy || rules.IsQueuedByKueue(e.obj.observed.object) {
		return // while workloads aren't ready, of which one may be its controller, that one's limits count
	}
	from := e.obj.timers.progressedAt
	if workloads.ReadySince.After(from) {
		from = workloads.ReadySince
	}
	if e.obj.gk == kube.DeploymentKind && v.NoProgress > 0 && stated == 0 {
		from = from.Add(controllerHeadStart)
	}
	e.failAfter(status, class.NoProgress, from.Add(limit), "no progress for "+limit.String())
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
	if status.State != Failed {
		return
	}
	late := e.obj.settings.failMode == failModeLate || e.obj.opts.TolerateFailures || e.obj.target.MayAppearLater
	timedOut := status.Finding != nil && status.Finding.Class == class.Timeout
	switch {
	case e.obj.settings.failMode == failModeWarn || e.obj.settings.failMode == failModeIgnore:
		status.State, status.Unverified = Ready, true
		status.Notes = append(status.Notes, "failed (tolerated): "+status.Message)
	case late && !timedOut && e.canHeal(status):
		status.State = Progressing
		e.checkBy(e.now.Add(10 * time.Second))
	}
}

// canHeal reports whether waiting longer makes any sense.
func (e *evaluation) canHeal(status *Status) bool {
	switch status.Finding.Class {
	case class.JobFailed, class.Replaced, class.Deleted, class.VolumeLost:
		return false
	case class.PodFailed:
		return e.obj.gk != kube.PodKind
	}
	return true
}
