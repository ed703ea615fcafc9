package track

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"deployer/track/class"
	"deployer/track/rules"
)

const (
	slowRolloutAfter    = 3 * time.Second  // a rollout that takes longer gets its pods looked at
	defaultNoProgress   = 10 * time.Minute // the API server's default of progressDeadlineSeconds
	controllerHeadStart = 15 * time.Second // the Deployment controller may say it itself, with more to it
)

// computeStatus works out the status at a time. It is pure but for the clocks that
// the subject keeps.
func (s *trackedObject) computeStatus(now time.Time) Status {
	s.timers.recheckAt, s.timers.computedAt = time.Time{}, now
	s.updateProgress(now)
	status := s.currentStatus(now)
	status.ID, status.Waited = s.ID, now.Sub(s.timers.appliedAt)
	if s.observed.object != nil {
		status.UID = s.observed.object.GetUID()
	}
	status.Notes = append(append([]string(nil), s.observed.notes...), status.Notes...)
	s.applyFailMode(&status, now)
	s.status = status
	return status
}

func (s *trackedObject) currentStatus(now time.Time) Status {
	switch {
	case s.Until == UntilNothing, s.Until != UntilGone && s.settings.isSkipped():
		return Status{State: Ready}
	case s.Until == UntilGone:
		return s.deletionStatus()
	case s.MayAppearLater && (s.observed.isGone || s.observed.object == nil) && s.observed.unverifiable == "":
		return Status{State: Waiting, Message: "it is not there yet"}
	case s.observed.isGone:
		return s.disappearedStatus(now)
	case s.observed.object == nil && s.observed.unverifiable != "":
		return Status{State: Ready, Unverified: true, Notes: []string{s.observed.unverifiable}}
	case s.observed.object == nil:
		return Status{State: Waiting, Message: "not seen yet"}
	case s.Baseline.GetUID() != "" && s.observed.object.GetUID() != s.Baseline.GetUID():
		return s.ownFailure(now, class.Replaced, "another object took its name during the rollout")
	case s.observed.object.GetDeletionTimestamp() != nil:
		return s.ownFailure(now, class.Terminating, "it is being deleted"+finalizersText(s.observed.object.GetFinalizers()))
	case s.Until == UntilPresent:
		return Status{State: Ready}
	}
	return s.liveStatus(now)
}

// liveStatus judges an object that is there and stays.
func (s *trackedObject) liveStatus(now time.Time) Status {
	v := s.opts.Rules.Evaluate(s.ruleInput(now))
	status := statusOf(s.ID, s.observed.object.GetUID(), v)
	if status.Rollout != nil {
		status.Rollout.Revision = s.newPods.revision
		status.Rollout.NewReady = s.newPodsReady()
		s.status.Rollout = status.Rollout // the pod rules look at it
	}
	s.timers.recheckAfter(now, v.RecheckAfter)
	switch v.Phase {
	case rules.Ready:
		if s.gk.Kind == "CustomResourceDefinition" && !s.observed.isServed {
			return Status{State: Progressing, Message: notServedMessage}
		}
		if left := s.readyGraceLeft(v.Grace, now); left > 0 {
			s.timers.recheckAfter(now, left)
			status.State = Progressing
			return status
		}
		clear(s.timers.failingSince)
		if left := s.stabilityLeft(status, now); left > 0 {
			s.timers.recheckAfter(now, left)
			status.State, status.Message = Progressing, status.Message+"; waiting whether it stays so"
			status.Problem = s.recentCrash(now)
		}
		return status
	case rules.Failed:
		return s.failureStatus(status, v, now)
	}
	s.timers.rolloutSeen, s.timers.readySince = true, time.Time{}
	if s.observed.unverifiable != "" {
		return Status{State: Ready, Unverified: true, Message: "not verified", Notes: []string{s.observed.unverifiable}}
	}
	s.addProblem(&status, now)
	s.failIfStalled(&status, v, now)
	return status
}

// readyGraceLeft is how long an object still has to stay ready that isn't so for good.
func (s *trackedObject) readyGraceLeft(grace time.Duration, now time.Time) time.Duration {
	if grace == 0 {
		return 0
	}
	if s.timers.failingSince[""] == (time.Time{}) {
		s.timers.failingSince[""] = now // the empty class: nothing is wrong
	}
	return grace - now.Sub(s.timers.failingSince[""])
}

// stableFor is how long a rollout has to stay ready whose containers nobody probes.
// The kubelet takes such a container for ready from its start to its end, and
// looks for containers that have ended every second; it takes up to another one
// until that is known on a node that is busy.
// (k8s.io/kubernetes/pkg/kubelet/pleg, genericPlegRelistPeriod)
const stableFor = 2 * time.Second

// stabilityLeft is how long a workload that has just become ready is still to be
// looked at, because a container that crashes at its start looks ready for a
// moment. It is over at once for what was ready from the start.
func (s *trackedObject) stabilityLeft(status Status, now time.Time) time.Duration {
	if s.timers.stabilityWaived || !s.timers.rolloutSeen || !s.Changed || status.Rollout == nil || status.Rollout.Wanted == 0 || !rules.LacksReadinessProbe(s.observed.object) {
		return 0
	}
	if s.timers.readySince.IsZero() {
		s.timers.readySince = now
	}
	return stableFor - now.Sub(s.timers.readySince)
}

// waiveStability ends the probation of what is ready when there is no time left for it,
// unless its containers have crashed before. It reports whether there was one.
func (s *trackedObject) waiveStability() bool {
	if s.timers.readySince.IsZero() || s.timers.arePaused() {
		return false
	}
	for _, m := range s.newPods.byUID {
		if m.Pod.HasRestarted() {
			return false
		}
	}
	s.timers.stabilityWaived = true
	return true
}

func (s *trackedObject) ruleInput(now time.Time) rules.Input {
	in := rules.Input{Object: s.observed.object, Baseline: s.Baseline, Changed: s.Changed,
		Complete: (s.Until == UntilComplete || s.settings.trackAs == "job") && s.settings.trackAs != "service", Applied: s.timers.appliedAt, Now: now,
		HasStatus: s.observed.hasStatus, Required: s.settings.rolloutRequired, Events: s.observed.eventCounts, Override: cmp.Or(s.settings.override, s.kindOverride)}
	if s.settings.rolloutRequired != "" && s.knowsNewPods() {
		in.NewReady = s.newPodsReady()
	}
	if s.release.workloads != nil && !s.isWorkload() {
		in.Workloads = s.release.workloads()
	}
	return in
}

// newPodsReady counts the ready ones of the new pods that are known.
func (s *trackedObject) newPodsReady() int {
	n := 0
	for _, m := range s.newPods.byUID {
		if m.Pod.Ready && !m.Pod.Deleting {
			n++
		}
	}
	return n
}

// knowsNewPods reports whether the known pods are of the revision that the object
// has now: they are looked for after it was judged.
func (s *trackedObject) knowsNewPods() bool {
	_, revision, owner := newPodsOf(s)
	return owner != "" && revision == s.newPods.revision
}

// ownFailure makes a failure of the object itself final when it has lasted.
func (s *trackedObject) ownFailure(now time.Time, c Class, message string) Status {
	return s.failureStatus(Status{State: Failed, Message: message},
		rules.Verdict{Class: c, Message: message, Grace: class.Of(c).Grace}, now)
}

func (s *trackedObject) failureStatus(status Status, v rules.Verdict, now time.Time) Status {
	at, ok := s.timers.failingSince[v.Class]
	if !ok {
		at = now
		s.timers.failingSince[v.Class] = at
	}
	p := &Problem{Class: v.Class, Title: titleOf(v.Class), Message: v.Message, Since: at, FinalAt: at.Add(v.Grace)}
	if now.Before(p.FinalAt) {
		status.State = Progressing
		s.timers.recheckBy(p.FinalAt)
	}
	if found := s.podProblem(now); found != nil && status.State == Failed && v.Class == class.ProgressDeadline {
		// The pods say more than the controller.
		found.Message = v.Message + "; " + found.oneLine()
		found.Class, found.Title, found.FinalAt = p.Class, p.Title, p.FinalAt
		p = found
	}
	status.Problem = p
	return status
}

// addProblem finds what holds a workload up, and whether that is final.
func (s *trackedObject) addProblem(status *Status, now time.Time) {
	problem := s.creationProblem(status.Rollout, now)
	if found := s.podProblem(now); problem == nil || found != nil && isWorse(found, problem, now) {
		problem = found
	}
	if problem != nil {
		s.timers.runningAgainSince = time.Time{}
	} else if problem = s.recentCrash(now); problem == nil {
		return
	}
	status.Problem = problem
	status.Message = strings.TrimPrefix(status.Message+"; "+problem.oneLine(), "; ")
	if isFinal(problem, now) {
		status.State = Failed
	} else {
		s.timers.recheckBy(problem.FinalAt)
	}
}

// runningAgainFor is how long a container that has crashed must run again until that
// is news. Without a probe it looks ready as soon as it is started.
const runningAgainFor = 5 * time.Second

// recentCrash is the crash after which all containers have run for less than that; nil
// for none.
func (s *trackedObject) recentCrash(now time.Time) *Problem {
	p := s.status.Problem
	if p == nil || !isRunFailure(p.Class) {
		return nil
	}
	if s.timers.runningAgainSince.IsZero() {
		s.timers.runningAgainSince = now
	}
	at := s.timers.runningAgainSince.Add(runningAgainFor)
	if !now.Before(at) {
		return nil
	}
	s.timers.recheckBy(at)
	held := *p
	held.FinalAt = time.Time{}
	return &held
}

func isFinal(p *Problem, now time.Time) bool { return !p.FinalAt.IsZero() && !now.Before(p.FinalAt) }

// isWorse orders problems: what is final, then what will be first.
func isWorse(a, b *Problem, now time.Time) bool {
	if isFinal(a, now) != isFinal(b, now) {
		return isFinal(a, now)
	}
	if a.FinalAt.IsZero() != b.FinalAt.IsZero() {
		return b.FinalAt.IsZero()
	}
	return a.FinalAt.Before(b.FinalAt)
}

func (p *Problem) oneLine() string {
	text := p.Title
	if len(p.Pods) > 0 {
		text = "pod " + p.Pods[0]
		if p.PodCount > 1 {
			text += fmt.Sprintf(" and %d more", p.PodCount-1)
		}
		text += ": " + p.Title
	}
	if p.Message != "" {
		text += ": " + p.Message
	}
	return text
}

// failIfStalled fails an object that has stood still for too long, or that has used
// up its own time.
func (s *trackedObject) failIfStalled(status *Status, v rules.Verdict, now time.Time) {
	if status.State == Failed {
		return
	}
	if s.settings.timeout > 0 {
		s.failAfter(status, class.Timeout, s.timers.appliedAt.Add(s.settings.timeout), "not ready after "+s.settings.timeout.String(), now)
	}
	patience, last := s.progressTimeout(v)
	if patience <= 0 || s.observed.object.GetLabels()["kueue.x-k8s.io/queue-name"] != "" {
		return
	}
	s.failAfter(status, class.NoProgress, last.Add(patience), "no progress for "+patience.String(), now)
}

func (s *trackedObject) progressTimeout(v rules.Verdict) (time.Duration, time.Time) {
	switch {
	case s.settings.noProgressTimeout > 0:
		return s.settings.noProgressTimeout, s.timers.progressedAt
	case v.NoProgress < 0:
		return 0, s.timers.progressedAt
	case v.NoProgress > 0 && s.gk.Kind == "Deployment":
		return v.NoProgress, s.timers.progressedAt.Add(controllerHeadStart)
	case v.NoProgress > 0:
		return v.NoProgress, s.timers.progressedAt
	case s.opts.NoProgressTimeout > 0:
		return s.opts.NoProgressTimeout, s.timers.progressedAt
	}
	return defaultNoProgress, s.timers.progressedAt
}

func (s *trackedObject) failAfter(status *Status, c Class, at time.Time, what string, now time.Time) {
	if status.State == Failed {
		return
	}
	if now.Before(at) {
		s.timers.recheckBy(at)
		return
	}
	p := &Problem{Class: c, Title: titleOf(c), Message: what, Since: s.timers.progressedAt, FinalAt: at}
	if under := status.Problem; under != nil {
		full := *under
		full.Class, full.Title, full.FinalAt, full.Since = p.Class, p.Title, p.FinalAt, p.Since
		full.Message = what + ": " + under.Title
		if under.Message != "" {
			full.Message = what + ": " + under.Message
		}
		p = &full
	} else if status.Message != "" {
		p.Message = what + ": " + status.Message
	}
	status.State, status.Problem = Failed, p
	status.Message = p.Message
}

// applyFailMode applies what the user wants to happen on failure.
func (s *trackedObject) applyFailMode(status *Status, now time.Time) {
	if status.State != Failed {
		return
	}
	late := s.settings.failMode == failLate || s.opts.TolerateFailures || s.MayAppearLater
	timedOut := status.Problem != nil && status.Problem.Class == class.Timeout
	switch {
	case s.settings.failMode == failWarn || s.settings.failMode == failIgnore:
		status.State, status.Unverified = Ready, true
		status.Notes = append(status.Notes, "failed, which is tolerated: "+status.Message)
	case late && !timedOut && s.canHeal(status):
		status.State = Progressing
		s.timers.recheckAfter(now, 10*time.Second)
	}
}

// canHeal reports whether waiting longer makes any sense.
func (s *trackedObject) canHeal(status *Status) bool {
	switch status.Problem.Class {
	case class.JobFailed, class.Replaced, class.Deleted, class.VolumeLost:
		return false
	case class.PodFailed:
		return s.gk != podKind
	}
	return true
}
