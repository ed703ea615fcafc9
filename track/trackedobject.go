package track

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"deployer/internal/kube"
	"deployer/track/class"
	"deployer/track/finding"
	"deployer/track/pods"
	"deployer/track/rules"
)

// A trackedObject is the state of one target. It does no I/O and gets the time from its
// caller, so that tests can replay recorded sequences.
//
// What the watches tell is kept in observed, events and newPods, and makes a status due. The evaluation keeps in timers, and in
// the histories of pods, how long something has lasted. Times are the object's clock's, also in the histories of its pods; only those of a
// status are the wait's.
type trackedObject struct {
	target   Target
	gk       schema.GroupKind
	opts     *Options
	settings settings
	kindRule *rules.Rule // of the definition of its kind; the object's own goes first
	release  releaseView

	observed observation
	events   eventLog
	newPods  newPods
	oldPods  oldPods
	clock    clock
	timers   timers
	schedule schedule
	lookups  lookups
	status   Status
}

// A releaseView answers questions about the other tracked objects. Its functions may be nil.
type releaseView struct {
	willAppear func(namespace string, what finding.Missing) bool // whether something on its way makes it
	missing    func(missingID) missingReference
	declares   func(kube.ID) bool
	workloads  func() rules.Workloads
}

// expects reports whether something on its way makes what is missing.
func (r *releaseView) expects(namespace string, what finding.Missing) bool {
	return r.willAppear != nil && r.willAppear(namespace, what)
}

// lookups is what is read about an object beyond its watch.
type lookups struct {
	isSlow     bool      // its rollout takes long: its pods and events are watched
	inFlight   bool      // a request about it is under way
	nextAt     time.Time // when to ask again; never zero
	eventReads int       // how often its events were read

	execErrorsRead map[string]bool // containers whose logs were read for why their command was not executed
}

func newTrackedObject(t Target, opts *Options, now time.Time) *trackedObject {
	obj := &trackedObject{
		target:   t,
		gk:       t.ID.GroupKind(),
		opts:     opts,
		settings: settingsOf(t.Baseline),
		observed: observation{object: t.Baseline},
		events:   eventLog{counts: rules.EventCounts{}},
		newPods:  newPods{byUID: map[types.UID]*pods.History{}, isOutdated: true},
		timers:   timers{appliedAt: now, progressedAt: now, highestCounts: map[string]int{}, failingSince: map[class.Class]time.Time{}},
		lookups:  lookups{nextAt: now, execErrorsRead: map[string]bool{}},
		status:   Status{ID: t.ID, State: Waiting},
	}
	if t.Baseline == nil {
		return obj
	}
	obj.observed.generation = t.Baseline.GetGeneration()
	obj.observed.serverAppliedAt = rules.LastWritten(t.Baseline)
	obj.updateRevision()
	switch {
	case obj.gk == kube.CRDKind:
		obj.observed.isServed = opts.computeStatus(t.Baseline, now, nil).State == Ready // it was there before
	case obj.gk == kube.PodKind && t.Until != UntilGone:
		obj.updateBarePod(t.Baseline)
	}
	return obj
}

// isAwaited reports whether the object's status isn't final and somebody waits until it is.
func (t *trackedObject) isAwaited() bool {
	return !t.status.State.IsFinal() && !t.settings.isBackground()
}

// update records a new state of the object.
func (t *trackedObject) update(obj *unstructured.Unstructured, now time.Time) {
	t.schedule.isDue = true
	if isOlder(obj, t.observed.object) {
		return // the list or the watch is older than what is known
	}
	isReplacement := t.target.MayAppearLater && t.target.Baseline != nil && obj.GetUID() != t.target.Baseline.GetUID()
	if isReplacement || t.target.Baseline == nil && t.target.Until != UntilGone {
		t.target.Baseline = obj
		t.settings = settingsOf(obj)
		t.observed.generation = obj.GetGeneration()
		t.newPods.revision = ""
		clear(t.newPods.byUID)
		t.oldPods = oldPods{}
	}
	t.observed.object, t.observed.isGone, t.newPods.isOutdated = obj, false, true
	if g := obj.GetGeneration(); g > t.observed.generation && t.observed.generation > 0 {
		if t.target.Baseline != nil {
			t.observed.addNote("changed by " + lastWriter(obj) + " during the rollout")
		}
		t.observed.generation, t.timers.progressedAt = g, t.clock.at(now)
		clear(t.timers.failingSince)
	}
	t.updateRevision()
	if t.podsAreOutdated(t.revisionPods()) {
		clear(t.newPods.byUID)
	}
	if t.gk == kube.PodKind {
		t.updateBarePod(obj)
	}
}

// updateBarePod follows a pod that is tracked itself.
func (t *trackedObject) updateBarePod(obj *unstructured.Unstructured) {
	var p corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &p); err == nil {
		t.updatePod(pods.Trim(&p))
	}
}

// updatePod takes a pod of the new revision.
func (t *trackedObject) updatePod(p pods.Pod) {
	t.schedule.isDue = true
	history := t.newPods.byUID[p.UID]
	if history == nil {
		history = pods.NewHistory(p, t.podPolicy(t.status.Rollout))
		t.newPods.byUID[p.UID] = history
	}
	history.Update(p)
	if p.Phase == corev1.PodRunning { // its node takes pods again
		maps.DeleteFunc(t.newPods.byUID, func(_ types.UID, h *pods.History) bool { return h.IsGone && h.Pod.Node == p.Node })
	}
}

// deletePod forgets a pod, unless its node has refused it: its controller makes another one, which may be refused too.
func (t *trackedObject) deletePod(uid types.UID) {
	t.schedule.isDue = true
	if history := t.newPods.byUID[uid]; history != nil && history.Pod.IsRefused() {
		history.IsGone = true
		return
	}
	delete(t.newPods.byUID, uid)
}

func (t *trackedObject) podPolicy(r *Rollout) pods.Policy {
	return pods.Policy{
		FailuresAllowed: cmp.Or(t.settings.failuresAllowed, t.opts.FailuresAllowed),
		Unchanged:       !t.target.Changed,
		AppliedAt:       t.observed.serverAppliedAt,
		MemoryLowered:   t.memoryLowered,
		OldPodsLeaving:  r != nil && r.Terminating > 0,
		OldPodsStay:     r != nil && r.Old > 0,
	}
}

// markGone records that the object was deleted; last is its last state, if known.
func (t *trackedObject) markGone(last *unstructured.Unstructured) {
	t.schedule.isDue = true
	if last != nil && t.observed.object != nil && last.GetUID() != t.observed.object.GetUID() {
		return
	}
	if last != nil && !isOlder(last, t.observed.object) {
		t.observed.object = last // its last state says whether a Job had finished
	}
	t.observed.isGone = true
}

// addEvent adds an event about the object or one of its pods and reports whether it is new.
// Events from before the apply are ignored.
func (t *trackedObject) addEvent(e finding.Event, pod types.UID, now time.Time) bool {
	isEarlier := t.target.Changed && !t.observed.serverAppliedAt.IsZero() && !e.Last.IsZero() && e.Last.Before(t.observed.serverAppliedAt.Add(-time.Second))
	if isEarlier || !t.events.add(e) {
		return false
	}
	if t.gk == kube.PodKind && t.observed.object != nil {
		pod = t.observed.object.GetUID()
	}
	if pod != "" {
		if history := t.newPods.byUID[pod]; history != nil {
			history.AddEvent(e.Reason, e.Message, e.Count, t.clock.at(now))
		}
		return true
	}
	message, known := rules.OneLine(e.Message), t.events.counts[e.Reason]
	t.events.counts[e.Reason] = rules.EventCount{Count: max(known.Count+1, e.Count), Message: message, Since: cmp.Or(known.Since, t.writtenAt(e, now))}
	if e.Reason == "FailedCreate" {
		t.newPods.recordCreationFailure(message, t.observed.podsCreated(), t.writtenAt(e, now))
		t.newPods.creationFailure.count++
	}
	return true
}

// writtenAt is when an event was written, by the object's clock and not before the apply: it is seen later, if events are
// watched later.
func (t *trackedObject) writtenAt(e finding.Event, now time.Time) time.Time {
	if e.Last.IsZero() || t.observed.serverAppliedAt.IsZero() {
		return t.clock.at(now)
	}
	at := t.timers.appliedAt.Add(max(0, e.Last.Sub(t.observed.serverAppliedAt)))
	return t.clock.at(earliest(at, now))
}

// pauseTimers begins an outage.
func (t *trackedObject) pauseTimers(at time.Time) {
	t.schedule.isDue = true
	t.clock.pause(at)
}

// resumeTimers ends an outage.
func (t *trackedObject) resumeTimers(at time.Time) {
	t.schedule.isDue = true
	t.clock.resume(at)
}

// memoryLowered reports whether the release lowered a container's memory limit.
func (t *trackedObject) memoryLowered(container string) bool {
	was, ok := memoryLimit(t.target.Previous, container)
	is, now := memoryLimit(t.target.Baseline, container)
	return now && (!ok && t.target.Previous != nil || ok && is.Cmp(was) < 0)
}

func memoryLimit(obj *unstructured.Unstructured, container string) (resource.Quantity, bool) {
	for _, c := range slices.Concat(rules.TemplateContainers(obj), rules.TemplateInitContainers(obj)) {
		if c["name"] == container {
			limit, own, _ := unstructured.NestedString(c, "resources", "limits", "memory")
			if !own { // those of the pod, which its containers share
				limit, _, _ = unstructured.NestedString(obj.Object, "spec", "template", "spec", "resources", "limits", "memory")
			}
			q, err := resource.ParseQuantity(limit)
			return q, err == nil
		}
	}
	return resource.Quantity{}, false
}
