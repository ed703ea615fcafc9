package track

import (
	"cmp"
	"slices"
	"time"

	"deployer/internal/kube"
	"deployer/track/class"
	"deployer/track/finding"
	"deployer/track/rules"
)

const slowRolloutAfter = 3 * time.Second // after this time the pods of a rollout are watched

// An evaluation computes the status of an object at one time. It also updates the object's
// timers and what is known of its new pods.
type evaluation struct {
	*trackedObject
	now time.Time
}

// computeStatus computes the status at a time and keeps it. It does no I/O.
func (t *trackedObject) computeStatus(now time.Time) Status {
	t.timers.isDue, t.timers.recheckAt, t.timers.computedAt = false, time.Time{}, now
	t.updateProgress(now)
	e := evaluation{t, now}
	status := e.currentStatus()
	status.ID, status.Waited = t.ID, now.Sub(t.timers.appliedAt)
	if t.observed.object != nil {
		status.UID = t.observed.object.GetUID()
	}
	status.Notes = slices.Concat(t.observed.notes, status.Notes)
	e.applyFailMode(&status)
	if f := status.Finding; f != nil {
		f.Objects, f.Fatal = finding.IDs{t.ID}, status.State == Failed
	}
	t.status = status
	return status
}

func (e evaluation) currentStatus() Status {
	switch {
	case e.Until != UntilGone && e.settings.isSkipped():
		return Status{State: Ready}
	case e.Until == UntilGone:
		return e.deletionStatus()
	case e.MayAppearLater && (e.observed.isGone || e.observed.object == nil) && e.observed.unverifiable == "":
		return Status{State: Waiting, Message: "it is not there yet"}
	case e.observed.isGone:
		return e.disappearedStatus()
	case e.observed.object == nil && e.observed.unverifiable != "":
		return Status{State: Ready, Unverified: true, Notes: []string{e.observed.unverifiable}}
	case e.observed.object == nil:
		return Status{State: Waiting, Message: "not seen yet"}
	case e.Baseline.GetUID() != "" && e.observed.object.GetUID() != e.Baseline.GetUID():
		return e.ownFailure(class.Replaced, "another object took its name during the rollout")
	case e.observed.object.GetDeletionTimestamp() != nil:
		return e.ownFailure(class.Terminating, "it is being deleted"+finalizersText(e.observed.object.GetFinalizers()))
	case e.Until == UntilPresent:
		return Status{State: Ready}
	}
	return e.liveStatus()
}

// liveStatus is the status of an object that exists and is not being deleted.
func (e evaluation) liveStatus() Status {
	v := e.opts.Rules.Evaluate(e.ruleInput())
	status := statusOf(v)
	if status.Rollout != nil {
		status.Rollout.NewReady = e.newPods.ready()
		e.status.Rollout = status.Rollout // the pod rules look at it
	}
	if v.RecheckAfter > 0 {
		e.timers.recheckBy(e.now.Add(v.RecheckAfter))
	}
	switch v.Phase {
	case rules.Ready:
		if e.gk == kube.CRDKind && !e.observed.isServed {
			return Status{State: Progressing, Message: notServedMessage}
		}
		if v.Grace > 0 {
			// The empty class: nothing is wrong.
			if finalAt := e.timers.since("", e.now).Add(v.Grace); e.now.Before(finalAt) {
				e.timers.recheckBy(finalAt)
				status.State = Progressing
				return status
			}
		}
		clear(e.timers.failingSince)
		status.Notes = append(status.Notes, e.newPods.resizeNotes()...)
		if left := e.stabilityLeft(status); left > 0 {
			e.timers.recheckBy(e.now.Add(left))
			status.State, status.Message = Progressing, status.Message+"; confirming that it stays ready"
			status.Finding = e.recentCrash()
		}
		return status
	case rules.Failed:
		return e.failureStatus(v)
	}
	e.timers.rolloutSeen, e.timers.readySince = true, time.Time{}
	if e.observed.unverifiable != "" {
		return Status{State: Ready, Unverified: true, Message: "not verified", Notes: []string{e.observed.unverifiable}}
	}
	e.addProblem(&status)
	e.failIfStalled(&status, v)
	return status
}

// ruleInput is what the rule of the object's kind may look at.
func (e evaluation) ruleInput() rules.Input {
	in := rules.Input{Object: e.observed.object, Baseline: e.Baseline, Changed: e.Changed,
		MustComplete: (e.Until == UntilComplete || e.settings.trackAs == "job") && e.settings.trackAs != "service",
		MustServe:    e.settings.trackAs == "service", AppliedAt: e.timers.appliedAt, Now: e.now,
		HasStatusSubresource: e.observed.hasStatusSubresource, RolloutRequired: e.settings.rolloutRequired, Events: e.events.counts,
		Override: cmp.Or(e.settings.override, e.kindOverride)}
	if e.settings.rolloutRequired != "" {
		e.updateRevision() // the pods of a new one are looked for after the status was computed
		if _, revision, owner := e.newPodsQuery(); owner != "" && revision == e.newPods.revision {
			in.NewReady = e.newPods.ready()
		}
	}
	if e.release.workloads != nil && !e.isWorkload() {
		in.Workloads = e.release.workloads()
	}
	return in
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
func (e evaluation) stabilityLeft(status Status) time.Duration {
	if !e.timers.rolloutSeen || !e.Changed || status.Rollout == nil || status.Rollout.Desired == 0 || !rules.LacksReadinessProbe(e.observed.object) {
		return 0
	}
	e.timers.readySince = cmp.Or(e.timers.readySince, e.now)
	return stableFor - e.now.Sub(e.timers.readySince)
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
	t.timers.readySince = t.timers.readySince.Add(-stableFor)
	return true
}
