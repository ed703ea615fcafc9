package track

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/internal/kube"
	"deployer/track/class"
	"deployer/track/finding"
	"deployer/track/rules"
)

const slowRolloutAfter = time.Second // after this time the pods and events of what isn't ready are watched

// An evaluation computes the status of an object at one time of its clock, from what is known of the object, its pods and
// its events. It does no I/O and reads no clock. What it finds it notes where it must be known how long it has lasted:
// in the object's timers, the histories of its pods, and in why they can't be created.
type evaluation struct {
	obj       *trackedObject
	now       time.Time
	rollout   *Rollout  // by the rule of the object's kind; as it was while that hasn't been asked
	nextCheck time.Time // when time alone may give another status; zero for never
}

// checkBy asks for another evaluation at a later time; zero, or a time that has passed, asks for nothing.
func (e *evaluation) checkBy(at time.Time) {
	if at.After(e.now) {
		e.nextCheck = earliest(e.nextCheck, at)
	}
}

// evaluate computes the status at a time of the object's clock, and when time alone may give another one.
func (t *trackedObject) evaluate(now time.Time) (status Status, nextCheck time.Time) {
	t.updateProgress(now)
	e := &evaluation{obj: t, now: now, rollout: t.status.Rollout}
	status = e.currentStatus()
	status.ID, status.Waited = t.target.ID, now.Sub(t.timers.appliedAt)
	if t.observed.object != nil {
		status.UID = t.observed.object.GetUID()
	}
	status.Notes = slices.Concat(t.observed.notes, status.Notes)
	e.applyFailMode(&status)
	if f := status.Finding; f != nil {
		f.Objects, f.Fatal = finding.IDs{t.target.ID}, status.State == Failed
		f.Since, f.FinalAt = t.clock.shown(f.Since), t.clock.shown(f.FinalAt)
	}
	return status, e.nextCheck
}

func (e *evaluation) currentStatus() Status {
	switch {
	case e.obj.target.Until != UntilGone && e.obj.settings.isSkipped():
		return Status{State: Ready}
	case e.obj.target.Until == UntilGone:
		return e.deletionStatus()
	case e.obj.target.MayAppearLater && (e.obj.observed.isGone || e.obj.observed.object == nil) && e.obj.observed.unverifiable == "":
		return Status{State: Waiting, Message: "it is not there yet"}
	case e.obj.observed.isGone:
		return e.disappearedStatus()
	case e.obj.observed.object == nil && e.obj.observed.unverifiable != "":
		return Status{State: Ready, Unverified: true, Notes: []string{e.obj.observed.unverifiable}}
	case e.obj.observed.object == nil:
		return Status{State: Waiting, Message: "not seen yet"}
	case e.obj.target.Baseline.GetUID() != "" && e.obj.observed.object.GetUID() != e.obj.target.Baseline.GetUID():
		return e.ownFailure(class.Replaced, "another object took its name during the rollout")
	case e.obj.observed.object.GetDeletionTimestamp() != nil:
		return e.ownFailure(class.Terminating, e.withDisruption("it is being deleted"+finalizersText(e.obj.observed.object.GetFinalizers())))
	case e.obj.target.Until == UntilPresent:
		return Status{State: Ready}
	}
	return e.liveStatus()
}

// liveStatus is the status of an object that exists and is not being deleted.
func (e *evaluation) liveStatus() Status {
	v := e.obj.opts.Rules.Evaluate(e.ruleInput())
	missing, isAsked := e.missingTarget()
	switch {
	case isAsked && v.Phase == rules.Ready:
		return Status{State: Progressing, Message: "looking for what it scales"}
	case missing != nil && v.Phase == rules.Ready:
		v.Notes = append(v.Notes, "it does nothing: "+missing.Message)
	case missing != nil:
		status := e.ownFailure(missing.Class, missing.Message)
		status.Finding.Missing = missing.Missing
		return status
	}
	status := statusOf(v)
	if status.Rollout != nil {
		status.Rollout.NewReady = e.obj.newPods.ready()
		e.rollout = status.Rollout
	}
	if v.RecheckAfter > 0 {
		e.checkBy(e.now.Add(v.RecheckAfter))
	}
	switch v.Phase {
	case rules.Ready:
		if e.obj.gk == kube.CRDKind && !e.obj.observed.isServed {
			return Status{State: Progressing, Message: notServedMessage}
		}
		if v.Grace > 0 {
			// The empty class: nothing is wrong.
			if finalAt := e.obj.timers.since("", e.now).Add(v.Grace); e.now.Before(finalAt) {
				e.checkBy(finalAt)
				status.State = Progressing
				return status
			}
		}
		clear(e.obj.timers.failingSince)
		status.Notes = append(status.Notes, e.obj.newPods.resizeNotes()...)
		if left := e.stabilityLeft(status); left > 0 {
			e.checkBy(e.now.Add(left))
			status.State, status.Message = Progressing, status.Message+"; confirming that it stays ready"
			status.Finding = e.recentCrash()
		}
		return status
	case rules.Failed:
		status := e.failureStatus(v)
		e.failIfStalled(&status, v)
		return status
	}
	e.obj.timers.rolloutSeen, e.obj.timers.readySince = true, time.Time{}
	if e.obj.observed.unverifiable != "" {
		return Status{State: Ready, Unverified: true, Message: "not verified", Notes: []string{e.obj.observed.unverifiable}}
	}
	e.addProblem(&status)
	e.failIfStalled(&status, v)
	return status
}

// missingTarget is the finding of an object whose scale target is neither in the release nor in the cluster, and isn't expected
// to appear; isAsked says that the API server hasn't answered yet.
func (e *evaluation) missingTarget() (f *Finding, isAsked bool) {
	id, isForeign := e.obj.foreignTarget()
	if !isForeign {
		return nil, false
	}
	known := e.obj.release.missing(id)
	if known.askedAt.IsZero() || !known.foundAt.IsZero() || known.isUnknown || e.obj.release.expects(id.namespace, id.Missing) {
		return nil, known.askedAt.IsZero() && known.inFlight
	}
	f = new(finding.Of(class.ScaleTargetMissing, id.Kind+"/"+id.Name+", which it scales, isn't there"))
	f.Missing = &id.Missing
	return f, false
}

// ruleInput is what the rule of the object's kind may look at.
func (e *evaluation) ruleInput() rules.Input {
	in := rules.Input{Object: e.obj.observed.object, Baseline: e.obj.target.Baseline, Changed: e.obj.target.Changed,
		MustComplete: (e.obj.target.Until == UntilComplete || e.obj.settings.trackAs == "job") && e.obj.settings.trackAs != "service",
		MustServe:    e.obj.settings.trackAs == "service", AppliedAt: e.obj.timers.appliedAt, Now: e.now,
		HasStatus: e.obj.observed.hasStatus, ProgressedAt: e.obj.timers.progressedAt, RolloutRequired: e.obj.settings.rolloutRequired, NewReady: e.obj.newPods.ready(), Events: e.obj.events.counts,
		Own: cmp.Or(e.obj.settings.rule, e.obj.kindRule), Workloads: e.workloads()}
	return in
}

// workloads is the state of the release's workloads, as far as the object may depend on them.
func (e *evaluation) workloads() rules.Workloads {
	if e.obj.release.workloads == nil || e.obj.isWorkload() {
		return rules.Workloads{}
	}
	w := e.obj.release.workloads()
	w.ReadySince = e.obj.clock.at(w.ReadySince)
	return w
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
func (e *evaluation) stabilityLeft(status Status) time.Duration {
	if !e.obj.timers.rolloutSeen || !e.obj.target.Changed || status.Rollout == nil || status.Rollout.Desired == 0 || !rules.LacksReadinessProbe(e.obj.observed.object) {
		return 0
	}
	e.obj.timers.readySince = cmp.Or(e.obj.timers.readySince, e.now)
	return stableFor - e.now.Sub(e.obj.timers.readySince)
}

// waiveStability accepts a ready workload at the deadline without waiting for stableFor,
// unless its containers have crashed before. It reports whether the workload was still
// being observed.
func (t *trackedObject) waiveStability() bool {
	if t.timers.readySince.IsZero() || t.clock.isPaused() {
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

// disappearedStatus is the status of an object that was deleted while it was tracked. What runs to its end
// may have been cleaned up after it had finished.
func (e *evaluation) disappearedStatus() Status {
	if e.obj.observed.object == nil {
		return e.ownFailure(class.Deleted, "it is not there")
	}
	cleanedUp := kube.IsDeletedWhenFinished(e.obj.observed.object)
	if cleanedUp || kube.RunsToEnd(e.obj.gk) {
		v := e.obj.opts.Rules.Evaluate(e.ruleInput())
		if v.Phase != rules.Progressing {
			return statusOf(v)
		}
		if cleanedUp || e.obj.gk == kube.JobKind {
			return e.ownFailure(class.Deleted, "deleted before it finished; if it was cleaned up, set ttlSecondsAfterFinished to 60 or more")
		}
	}
	return e.ownFailure(class.Deleted, e.withDisruption("deleted while it was tracked"))
}

// withDisruption adds to what happens to a pod that is tracked itself why the cluster does that, such as for a pod of a higher priority.
func (e *evaluation) withDisruption(text string) string {
	if e.obj.gk != kube.PodKind {
		return text
	}
	return rules.JoinText(text, e.obj.newPods.disruption())
}

// deletionStatus is the status of an object that is to be deleted. When another object has
// its name by now, the one to delete is gone; nobody waits for the other one.
func (e *evaluation) deletionStatus() Status {
	switch {
	case e.obj.observed.isGone:
		return Status{State: Gone}
	case e.obj.observed.unverifiable != "":
		return Status{State: Gone, Unverified: true, Notes: []string{e.obj.observed.unverifiable}}
	case e.obj.observed.object == nil:
		return Status{State: Waiting, Message: "waiting to be deleted"}
	case e.obj.target.Baseline != nil && e.obj.target.Baseline.GetUID() != "" && e.obj.observed.object.GetUID() != e.obj.target.Baseline.GetUID():
		return Status{State: Gone, Notes: []string{"another object of this name has been created"}}
	}
	status := Status{State: Progressing, Message: "being deleted", Finalizers: e.obj.observed.object.GetFinalizers()}
	if e.obj.observed.object.GetDeletionTimestamp() == nil {
		status.Message = "waiting to be deleted"
	}
	status.Message += finalizersText(status.Finalizers)
	if e.obj.gk == kube.NamespaceKind {
		status.Message += namespaceContent(e.obj.observed.object)
	}
	return status
}

func finalizersText(finalizers []string) string {
	if len(finalizers) == 0 {
		return ""
	}
	return ": waiting for finalizer " + strings.Join(slices.Sorted(slices.Values(finalizers)), ", ")
}

// namespaceContent says what is left in a namespace that is being deleted, and what holds it. The condition which says that
// all content was deleted is about the requests to delete it.
// https://kubernetes.io/docs/concepts/overview/working-with-objects/namespaces/
func namespaceContent(namespace *unstructured.Unstructured) string {
	text := ""
	for _, c := range rules.Conditions(namespace) {
		if (c["type"] == "NamespaceContentRemaining" || c["type"] == "NamespaceFinalizersRemaining") && c["status"] == "True" {
			message, _ := c["message"].(string)
			text += ": " + message
		}
	}
	return text
}
