package track

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"deployer/internal/kube"
	"deployer/track/class"
	"deployer/track/rules"
)

const (
	slowRolloutAfter    = 3 * time.Second  // after this time the pods of a rollout are watched
	defaultNoProgress   = 10 * time.Minute // the API server's default of progressDeadlineSeconds
	controllerHeadStart = 15 * time.Second // gives the Deployment controller time to report its own, more precise failure
)

// computeStatus computes the status at a time and keeps it. It does no I/O. It also updates
// the object's timers and what is known of its new pods.
func (t *trackedObject) computeStatus(now time.Time) Status {
	t.timers.isDue, t.timers.recheckAt, t.timers.computedAt = false, time.Time{}, now
	t.updateProgress(now)
	status := t.currentStatus(now)
	status.ID, status.Waited = t.ID, now.Sub(t.timers.appliedAt)
	if t.observed.object != nil {
		status.UID = t.observed.object.GetUID()
	}
	status.Notes = slices.Concat(t.observed.notes, status.Notes)
	t.applyFailMode(&status, now)
	t.status = status
	return status
}

func (t *trackedObject) currentStatus(now time.Time) Status {
	switch {
	case t.Until != UntilGone && t.settings.isSkipped():
		return Status{State: Ready}
	case t.Until == UntilGone:
		return t.deletionStatus()
	case t.MayAppearLater && (t.observed.isGone || t.observed.object == nil) && t.observed.unverifiable == "":
		return Status{State: Waiting, Message: "it is not there yet"}
	case t.observed.isGone:
		return t.disappearedStatus(now)
	case t.observed.object == nil && t.observed.unverifiable != "":
		return Status{State: Ready, Unverified: true, Notes: []string{t.observed.unverifiable}}
	case t.observed.object == nil:
		return Status{State: Waiting, Message: "not seen yet"}
	case t.Baseline.GetUID() != "" && t.observed.object.GetUID() != t.Baseline.GetUID():
		return t.ownFailure(now, class.Replaced, "another object took its name during the rollout")
	case t.observed.object.GetDeletionTimestamp() != nil:
		return t.ownFailure(now, class.Terminating, "it is being deleted"+finalizersText(t.observed.object.GetFinalizers()))
	case t.Until == UntilPresent:
		return Status{State: Ready}
	}
	return t.liveStatus(now)
}

// liveStatus is the status of an object that exists and is not being deleted.
func (t *trackedObject) liveStatus(now time.Time) Status {
	v := t.opts.Rules.Evaluate(t.ruleInput(now))
	status := statusOf(t.ID, t.observed.object.GetUID(), v)
	if status.Rollout != nil {
		status.Rollout.NewReady = t.newPodsReady()
		t.status.Rollout = status.Rollout // the pod rules look at it
	}
	t.timers.recheckAfter(now, v.RecheckAfter)
	switch v.Phase {
	case rules.Ready:
		if t.gk == kube.CRDKind && !t.observed.isServed {
			return Status{State: Progressing, Message: notServedMessage}
		}
		if left := t.readyGraceLeft(v.Grace, now); left > 0 {
			t.timers.recheckAfter(now, left)
			status.State = Progressing
			return status
		}
		clear(t.timers.failingSince)
		if left := t.stabilityLeft(status, now); left > 0 {
			t.timers.recheckAfter(now, left)
			status.State, status.Message = Progressing, status.Message+"; confirming that it stays ready"
			status.Problem = t.recentCrash(now)
		}
		return status
	case rules.Failed:
		return t.failureStatus(status, v, now)
	}
	t.timers.rolloutSeen, t.timers.readySince = true, time.Time{}
	if t.observed.unverifiable != "" {
		return Status{State: Ready, Unverified: true, Message: "not verified", Notes: []string{t.observed.unverifiable}}
	}
	t.addProblem(&status, now)
	t.failIfStalled(&status, v, now)
	return status
}

// readyGraceLeft returns how much longer an object must stay ready before Ready is final.
func (t *trackedObject) readyGraceLeft(grace time.Duration, now time.Time) time.Duration {
	if grace == 0 {
		return 0
	}
	return grace - now.Sub(t.timers.since("", now)) // the empty class: nothing is wrong
}

// stableFor is how long a rollout has to stay ready whose containers have no readiness probe.
// The kubelet takes such a container for ready from its start to its end, and
// looks for containers that have ended every second; it takes up to another one
// until that is known on a node that is busy.
// (k8s.io/kubernetes/pkg/kubelet/pleg, genericPlegRelistPeriod)
const stableFor = 2 * time.Second

// stabilityLeft returns how much longer a workload must stay ready before that is believed:
// a container that crashes at its start looks ready for a moment. It is zero for a workload
// that was ready from the start.
func (t *trackedObject) stabilityLeft(status Status, now time.Time) time.Duration {
	if t.timers.stabilityWaived || !t.timers.rolloutSeen || !t.Changed || status.Rollout == nil || status.Rollout.Desired == 0 || !rules.LacksReadinessProbe(t.observed.object) {
		return 0
	}
	if t.timers.readySince.IsZero() {
		t.timers.readySince = now
	}
	return stableFor - now.Sub(t.timers.readySince)
}

// waiveStability accepts a ready workload at the deadline without waiting for stableFor,
// unless its containers have crashed before. It reports whether the workload was still
// being observed.
func (t *trackedObject) waiveStability() bool {
	if t.timers.readySince.IsZero() || t.timers.arePaused() {
		return false
	}
	for _, history := range t.newPods.byUID {
		if history.Pod.HasRestarted() {
			return false
		}
	}
	t.timers.stabilityWaived = true
	return true
}

func (t *trackedObject) ruleInput(now time.Time) rules.Input {
	in := rules.Input{Object: t.observed.object, Baseline: t.Baseline, Changed: t.Changed,
		MustComplete: (t.Until == UntilComplete || t.settings.trackAs == "job") && t.settings.trackAs != "service", AppliedAt: t.timers.appliedAt, Now: now,
		HasStatusSubresource: t.observed.hasStatusSubresource, RolloutRequired: t.settings.rolloutRequired, Events: t.observed.eventCounts, Override: cmp.Or(t.settings.override, t.kindOverride)}
	if t.settings.rolloutRequired != "" && t.knowsNewPods() {
		in.NewReady = t.newPodsReady()
	}
	if t.release.workloads != nil && !t.isWorkload() {
		in.Workloads = t.release.workloads()
	}
	return in
}

// newPodsReady counts the known new pods that are ready.
func (t *trackedObject) newPodsReady() int {
	n := 0
	for _, history := range t.newPods.byUID {
		if history.Pod.Ready && !history.Pod.Deleting {
			n++
		}
	}
	return n
}

// knowsNewPods refreshes the revision first and reports whether the known pods belong to it:
// pods are looked for after the status was computed.
func (t *trackedObject) knowsNewPods() bool {
	_, revision, owner := refreshRevision(t)
	return owner != "" && revision == t.newPods.revision
}

// ownFailure makes a failure of the object itself final when it has lasted.
func (t *trackedObject) ownFailure(now time.Time, c Class, message string) Status {
	return t.failureStatus(Status{State: Failed, Message: message},
		rules.Verdict{Class: c, Message: message, Grace: class.InfoOf(c).Grace}, now)
}

func (t *trackedObject) failureStatus(status Status, v rules.Verdict, now time.Time) Status {
	at := t.timers.since(v.Class, now)
	p := &Problem{Class: v.Class, Title: titleOf(v.Class), Message: v.Message, Since: at, FinalAt: at.Add(v.Grace)}
	if now.Before(p.FinalAt) {
		status.State = Progressing
		t.timers.recheckBy(p.FinalAt)
	}
	if found := t.podProblem(now); found != nil && status.State == Failed && v.Class == class.ProgressDeadline {
		// The pods say more than the controller.
		found.Message = v.Message + "; " + found.oneLine()
		found.Class, found.Title, found.FinalAt = p.Class, p.Title, p.FinalAt
		p = found
	}
	status.Problem = p
	return status
}

// addProblem sets the worst problem of a workload that isn't ready, and fails it if that
// problem is final.
func (t *trackedObject) addProblem(status *Status, now time.Time) {
	problem := t.creationProblem(status.Rollout, now)
	if found := t.podProblem(now); problem == nil || found != nil && isWorse(found, problem, now) {
		problem = found
	}
	if problem != nil {
		t.timers.runningAgainSince = time.Time{}
	} else if problem = t.recentCrash(now); problem == nil {
		return
	}
	status.Problem = problem
	status.Message = strings.TrimPrefix(status.Message+"; "+problem.oneLine(), "; ")
	if isFinal(problem, now) {
		status.State = Failed
	} else {
		t.timers.recheckBy(problem.FinalAt)
	}
}

// runningAgainFor is how long a container must run after a crash before the problem counts
// as over. Without a probe the container looks ready as soon as it has started.
const runningAgainFor = 5 * time.Second

// recentCrash returns the last crash while all containers have run for less than
// runningAgainFor since; otherwise nil.
func (t *trackedObject) recentCrash(now time.Time) *Problem {
	p := t.status.Problem
	if p == nil || !isRunFailure(p.Class) {
		return nil
	}
	if t.timers.runningAgainSince.IsZero() {
		t.timers.runningAgainSince = now
	}
	at := t.timers.runningAgainSince.Add(runningAgainFor)
	if !now.Before(at) {
		return nil
	}
	t.timers.recheckBy(at)
	held := *p
	held.FinalAt = time.Time{}
	return &held
}

func isFinal(p *Problem, now time.Time) bool { return !p.FinalAt.IsZero() && !now.Before(p.FinalAt) }

// isWorse orders problems: final ones first, then those that become final sooner.
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
		text = "pod " + p.Pods[0] + andMore(p.PodCount-1) + ": " + p.Title
	}
	if p.Message != "" {
		text += ": " + p.Message
	}
	return text
}

// failIfStalled fails an object that has made no progress for too long, or whose own
// timeout is over.
func (t *trackedObject) failIfStalled(status *Status, v rules.Verdict, now time.Time) {
	if t.settings.timeout > 0 {
		t.failAfter(status, class.Timeout, t.timers.appliedAt.Add(t.settings.timeout), "not ready after "+t.settings.timeout.String(), now)
	}
	patience, last := t.progressTimeout(v)
	if patience <= 0 || t.observed.object.GetLabels()["kueue.x-k8s.io/queue-name"] != "" {
		return
	}
	t.failAfter(status, class.NoProgress, last.Add(patience), "no progress for "+patience.String(), now)
}

func (t *trackedObject) progressTimeout(v rules.Verdict) (time.Duration, time.Time) {
	switch {
	case t.settings.noProgressTimeout > 0:
		return t.settings.noProgressTimeout, t.timers.progressedAt
	case v.NoProgress < 0:
		return 0, t.timers.progressedAt
	case v.NoProgress > 0 && t.gk.Kind == "Deployment":
		return v.NoProgress, t.timers.progressedAt.Add(controllerHeadStart)
	case v.NoProgress > 0:
		return v.NoProgress, t.timers.progressedAt
	case t.opts.NoProgressTimeout > 0:
		return t.opts.NoProgressTimeout, t.timers.progressedAt
	}
	return defaultNoProgress, t.timers.progressedAt
}

func (t *trackedObject) failAfter(status *Status, c Class, at time.Time, what string, now time.Time) {
	if status.State == Failed {
		return
	}
	if now.Before(at) {
		t.timers.recheckBy(at)
		return
	}
	p := &Problem{Class: c, Title: titleOf(c), Message: what, Since: t.timers.progressedAt, FinalAt: at}
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
func (t *trackedObject) applyFailMode(status *Status, now time.Time) {
	if status.State != Failed {
		return
	}
	late := t.settings.failMode == failLate || t.opts.TolerateFailures || t.MayAppearLater
	timedOut := status.Problem != nil && status.Problem.Class == class.Timeout
	switch {
	case t.settings.failMode == failWarn || t.settings.failMode == failIgnore:
		status.State, status.Unverified = Ready, true
		status.Notes = append(status.Notes, "failed (tolerated): "+status.Message)
	case late && !timedOut && t.canHeal(status):
		status.State = Progressing
		t.timers.recheckAfter(now, 10*time.Second)
	}
}

// canHeal reports whether waiting longer makes any sense.
func (t *trackedObject) canHeal(status *Status) bool {
	switch status.Problem.Class {
	case class.JobFailed, class.Replaced, class.Deleted, class.VolumeLost:
		return false
	case class.PodFailed:
		return t.gk != kube.PodKind
	}
	return true
}
