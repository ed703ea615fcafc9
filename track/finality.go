package track

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/internal/kube"
	"deployer/track/class"
	"deployer/track/finding"
	"deployer/track/pods"
	"deployer/track/rules"
)

// From when a failure is final is decided in this file, and nowhere else. The data are in the table of package class:
// how long a problem must last, and how often it must occur. What is decided here is what changes that:
//
//	finalInPod        a problem of one pod, for that pod
//	podsDeadline      the same problem of all pods that have it, for their object
//	missingDeadline   what is missing may be on its way
//	creationFinalAt   pods that can't be created
//	oldPodFinalAt     old pods that the rollout waits for
//	ownFinalAt        what the object itself says
//	progressLimit     nothing happens
//	isTolerated       what the user wants to be waited for nevertheless
//
// All of them are functions of what is known and of a time. Only the wait asks the cluster: before it believes a failure
// that silence has proved, see updateStatus.

const (
	badNodeGrace        = 2 * time.Minute  // how long one pod may fail while others of the revision are fine
	othersHealGrace     = 20 * time.Second // how long pods that may still heal are awaited when others can't
	unchangedGrace      = 30 * time.Second // how long a container may crash in a pod that the release hasn't changed
	wasReadyGrace       = time.Minute      // how long one may crash that was ready in this rollout
	onItsWayGrace       = 20 * time.Second // how much longer something may be missing that is expected to appear
	maxEvictions        = 3                // evictions that are no bad luck any more
	pendingRecheck      = 2 * time.Second  // until it is looked again whether what is missing is on its way
	defaultNoProgress   = 10 * time.Minute // the API server's default of progressDeadlineSeconds
	silenceSlack        = 2 * time.Minute  // beside the longest time in which nothing may be heard of a pod, by its own settings
	controllerHeadStart = 15 * time.Second // gives the Deployment controller time to report its own, more precise failure
)

// A deadline is when a failure is final, and when to look whether that has changed; both are zero for never.
type deadline struct{ finalAt, lookAt time.Time }

// finalInPod returns when a problem is final for its pod; zero for never.
func finalInPod(f *pods.Symptom) time.Time {
	info := class.InfoOf(f.Class)
	grace, isOftenEnough := info.Grace, f.Attempts >= f.Limit
	switch {
	case info.Scope == class.Informational:
		return time.Time{}
	case f.Ended:
		grace, isOftenEnough = class.InfoOf(class.ContainerEnded).Grace, true
	case !isOftenEnough && info.Unseen > 0:
		grace, isOftenEnough = grace+info.Unseen, true
	case f.Certain:
		grace = 0
	case f.LacksDevice:
		grace = class.InfoOf(class.NoNodeFits).Grace
	case info.RunsAgain && f.MayHeal:
		grace = unchangedGrace
	case info.RunsAgain && f.WasReady:
		grace = wasReadyGrace
	}
	at := f.Since.Add(grace)
	if !isOftenEnough || f.IsKnownFromEvents() && f.LastEventAt.Before(at) {
		return time.Time{} // the kubelet says so again within minutes, or it has got past it and is pulling the image
	}
	return at
}

// podsDeadline is the deadline of a problem of pods for their object; missing is what it is about, if something is missing.
func (s *podSummary) podsDeadline(g *problemGroup, missing *finding.Missing) deadline {
	if s.awaitsPullSecret(g) {
		return deadline{lookAt: s.now.Add(pendingRecheck)}
	}
	if missing != nil {
		if d, isSpecial := s.missingDeadline(g, *missing); isSpecial {
			return d
		}
	}
	c, info := g.symptom.Class, class.InfoOf(g.symptom.Class)
	switch {
	case s.obj.gk == kube.PodKind && (c == class.Evicted || c == class.NodeRefused || c == class.PodFailed):
		return deadline{finalAt: s.now}
	case s.runsAreCounted(g):
		return deadline{}
	case (c == class.Evicted || c == class.NodeRefused) && s.ended >= maxEvictions && (s.areMoreThanWanted(s.ended) || c == class.NodeRefused && g.mostOnANode() >= maxEvictions):
		return deadline{finalAt: s.now}
	case info.Scope == class.Informational, g.finalAt.IsZero():
		return deadline{}
	case c == class.PodFailed:
		return deadline{} // the controller makes another pod
	case !s.affectsAllPods(g, info.Scope) && !s.areMoreThanWanted(len(g.members)):
		return deadline{finalAt: g.finalAt.Add(badNodeGrace)}
	case info.RunsAgain && s.final < s.failing:
		return deadline{finalAt: g.finalAt.Add(othersHealGrace), lookAt: g.finalAt} // it may be final for all of them then
	}
	return deadline{finalAt: g.finalAt}
}

// notCreated is the reason of a container that its runtime doesn't even create, as CRI-O with a command that
// isn't there: the kubelet tries again for ever, and the pod of a Job never fails.
const notCreated = "CreateContainerError"

// runsAreCounted reports whether a problem is one of runs that the object's controller counts itself, as that of Jobs
// does against its backoffLimit.
func (s *podSummary) runsAreCounted(g *problemGroup) bool {
	return kinds[s.obj.gk].runsToEnd && class.InfoOf(g.symptom.Class).Ran && g.symptom.Reason != notCreated
}

// areMoreThanWanted reports whether more pods have a problem than are wanted at a time, so that also one that
// replaced another has it. A node that goes may take many pods with it, once.
func (s *podSummary) areMoreThanWanted(n int) bool {
	r := s.eval.rollout
	return r != nil && n > r.Desired
}

// affectsAllPods reports whether a problem fails the whole workload. For a class that is
// deterministic one failing pod is enough, unless another pod got past the problem. For
// other classes all new pods must fail. In a StatefulSet that updates in order the first
// failing pod is enough, because the update stops there.
func (s *podSummary) affectsAllPods(g *problemGroup, scope class.Scope) bool {
	if s.obj.updatesInOrder() {
		return true
	}
	mayAffectOne := scope != class.Deterministic
	for _, history := range s.obj.newPods.byUID {
		mayAffectOne = mayAffectOne || history.HasPassed(g.symptom.Class, g.symptom.Container)
	}
	return !mayAffectOne || s.ready == 0 && s.failing >= s.total-s.ended
}

// updatesInOrder reports whether the object is a StatefulSet that updates one pod
// after the other.
func (t *trackedObject) updatesInOrder() bool {
	if t.gk != kube.StatefulSetKind || t.observed.object == nil {
		return false
	}
	policy, _, _ := unstructured.NestedString(t.observed.object.Object, "spec", "podManagementPolicy")
	return policy != "Parallel"
}

// missingDeadline is the deadline of a problem that is about something missing; false when it is like any other.
func (s *podSummary) missingDeadline(g *problemGroup, what finding.Missing) (deadline, bool) {
	obj, now := s.obj, s.now
	known := missingReference{}
	if obj.release.missing != nil {
		known = obj.release.missing(missingID{obj.target.ID.Namespace, what})
	}
	foundAt := obj.clock.at(known.foundAt)
	switch {
	case !known.foundAt.IsZero() && g.symptom.Class != class.MountedObjectMissing:
		return deadline{finalAt: foundAt.Add(noticedByKubeletWithin)}, true
	case !known.foundAt.IsZero() && g.symptom.LastEventAt.Before(foundAt.Add(noticedByKubeletWithin)):
		return deadline{}, true // the kubelet hasn't missed it since
	case !known.foundAt.IsZero():
		return deadline{finalAt: foundAt.Add(mountedAgainWithin)}, true
	case known.isPermanent && s.affectsAllPods(g, class.Deterministic):
		return deadline{finalAt: g.symptom.Since}, true
	case known.isPermanent || !obj.release.expects(obj.target.ID.Namespace, what):
		return deadline{}, false
	}
	return deadline{finalAt: now.Add(class.InfoOf(g.symptom.Class).Grace + onItsWayGrace), lookAt: now.Add(pendingRecheck)}, true
}

// awaitsPullSecret reports whether a registry denies an image while something in the release is expected to create
// the pull secret for it.
func (s *podSummary) awaitsPullSecret(g *problemGroup) bool {
	return g.symptom.Class == class.ImagePullPermanent && !g.symptom.Certain && slices.ContainsFunc(g.pod.MissingPullSecrets, func(name string) bool {
		return s.obj.release.expects(s.obj.target.ID.Namespace, finding.Missing{Kind: "Secret", Name: name})
	})
}

// creationFinalAt returns when it is final that pods can't be created, for a class of reasons; zero for never.
func creationFinalAt(c Class, since time.Time) time.Time {
	info := class.InfoOf(c)
	if info.Scope == class.Informational {
		return time.Time{}
	}
	return since.Add(info.Grace)
}

// oldPodFinalAt returns when it is final that a rollout waits in vain for an old pod: not before it was looked at again.
func oldPodFinalAt(since, now, lookedAt time.Time) time.Time {
	at := since.Add(class.InfoOf(class.OldPodStays).Grace)
	if !now.Before(at) && lookedAt.Before(at) {
		return now.Add(time.Second)
	}
	return at
}

// ownFinalAt returns when a failure is final that the object itself shows, or its rule; zero for never. What nobody counts
// is final after its time alone.
func ownFinalAt(v rules.Verdict, since time.Time) time.Time {
	if v.Attempts > 0 && v.Attempts < class.InfoOf(v.Class).Attempts {
		return time.Time{}
	}
	return since.Add(v.Grace)
}

// progressLimit returns how long the object may be without progress, and since when that counts; false when it may be so
// for ever.
func (e *evaluation) progressLimit(v rules.Verdict) (limit time.Duration, from time.Time, limited bool) {
	// Negative timeouts of the user count as none, that of a rule as no limit.
	isDeployment := e.obj.gk == kube.DeploymentKind
	stated, ofRun := max(0, e.obj.settings.noProgressTimeout), max(0, e.obj.opts.NoProgressTimeout)
	if isDeployment {
		stated = cmp.Or(stated, ofRun) // every Deployment has a deadline: the API server sets one
	}
	limit = cmp.Or(stated, v.NoProgress, ofRun, max(defaultNoProgress, rules.LongestSilence(e.obj.observed.object)+silenceSlack))
	workloads := e.workloads()
	if limit < 0 || workloads.Busy || rules.IsQueuedByKueue(e.obj.observed.object) {
		return 0, time.Time{}, false // while workloads aren't ready, of which one may be its controller, that one's limits count
	}
	from = e.obj.timers.progressedAt
	if workloads.ReadySince.After(from) {
		from = workloads.ReadySince
	}
	if isDeployment && v.NoProgress > 0 && stated == 0 {
		from = from.Add(controllerHeadStart)
	}
	return limit, from, true
}

// isTolerated reports whether a failure isn't to end the wait before time is up, because it may heal.
func (e *evaluation) isTolerated(f *Finding) bool {
	if e.obj.settings.failMode != failModeLate && !e.obj.opts.TolerateFailures && !e.obj.target.MayAppearLater {
		return false
	}
	stays := class.InfoOf(f.Class).Stays || f.Class == class.PodFailed && e.obj.gk == kube.PodKind
	return f.Class != class.Timeout && !stays
}
