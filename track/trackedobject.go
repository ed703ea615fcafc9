package track

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"deployer/internal/kube"
	"deployer/track/pods"
	"deployer/track/rules"
)

// A trackedObject is the state of one target. It does no I/O and gets the time from its
// caller, so that tests can replay recorded sequences.
type trackedObject struct {
	Target
	gk           schema.GroupKind
	opts         *Options
	settings     settings
	kindOverride *rules.Override // of the definition of its kind; the object's own goes first
	release      releaseView

	observed observation
	newPods  newPods
	timers   timers
	lookups  lookups
	status   Status
}

// A releaseView answers questions about the other targets. Its functions may be nil.
type releaseView struct {
	willAppear func(pods.Missing) bool // whether something on its way makes it
	missing    func(pods.Missing) missingReference
	workloads  func() rules.Workloads
}

// An observation is what the API server has shown of an object.
type observation struct {
	object               *unstructured.Unstructured // as last seen; nil before
	generation           int64                      // that the status is about
	serverAppliedAt      time.Time                  // by the cluster's clock; zero when unknown
	isGone               bool                       // it existed and was deleted
	isServed             bool                       // of a CustomResourceDefinition: its kind is served
	hasStatusSubresource *bool                      // its kind has a status subresource; nil when unknown
	unverifiable         string                     // why the object can't be observed; empty when it can
	eventCounts          rules.EventCounts
	events               []Event // newest last, at most maxEvents
	notes                []string
}

// newPods is what is known of the pods of a workload's new revision.
type newPods struct {
	revision        string // label value of the pods; empty when unknown
	revisionNumber  string // the Deployment's own number of that revision
	owner           string // key of the revision in podWatches.owners; empty before its pods are wanted
	byUID           map[types.UID]*pods.History
	creationFailure *podCreationFailure // why the controller creates none; nil when it does
	isOutdated      bool                // the workload has changed since its pods were looked for
}

// lookups is what is read about an object beyond its watch.
type lookups struct {
	isSlow     bool      // its rollout takes long: its pods and events are watched
	inFlight   bool      // a request about it is under way
	nextAt     time.Time // when to ask again
	eventReads int       // how often its events were read

	execErrorsRead map[string]bool // containers whose logs were read for why their command was not executed
}

// podCreationFailure is what a controller says of pods that it can't create.
type podCreationFailure struct {
	message    string
	since      time.Time
	count      int
	podsBefore int // pods that existed when the message came
}

func newTrackedObject(t Target, opts *Options, now time.Time) *trackedObject {
	obj := &trackedObject{Target: t, opts: opts, timers: newTimers(now),
		observed: observation{object: t.Baseline, eventCounts: rules.EventCounts{}},
		newPods:  newPods{byUID: map[types.UID]*pods.History{}, isOutdated: true}}
	obj.settings = settingsOf(t.Baseline)
	obj.gk = t.ID.GroupKind()
	if t.Baseline != nil {
		obj.observed.generation = t.Baseline.GetGeneration()
		obj.observed.serverAppliedAt = rules.LastWritten(t.Baseline)
	}
	obj.status = Status{ID: t.ID, State: Waiting}
	if obj.gk == kube.CRDKind && t.Baseline != nil {
		obj.observed.isServed = opts.Rules.Evaluate(obj.ruleInput(now)).Phase == rules.Ready // it was there before
	}
	if obj.gk == kube.PodKind && t.Baseline != nil && t.Until != UntilGone {
		obj.updateBarePod(t.Baseline)
	}
	return obj
}

// update notes a new state of the object.
func (t *trackedObject) update(obj *unstructured.Unstructured, now time.Time) {
	t.timers.isDue = true
	if t.observed.object != nil && isOlder(obj, t.observed.object) {
		return // the list or the watch is older than what is known
	}
	anew := t.MayAppearLater && t.Baseline != nil && obj.GetUID() != t.Baseline.GetUID()
	if anew || t.Baseline == nil && t.Until != UntilGone {
		t.Target.Baseline = obj
		t.settings = settingsOf(obj)
		t.observed.generation = obj.GetGeneration()
	}
	t.observed.object, t.observed.isGone, t.newPods.isOutdated = obj, false, true
	if g := obj.GetGeneration(); g > t.observed.generation && t.observed.generation > 0 {
		if t.Baseline != nil {
			t.addNote("changed by " + lastWriter(obj) + " during the rollout")
		}
		t.observed.generation, t.timers.progressedAt = g, now
		clear(t.timers.failingSince)
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
	t.timers.isDue = true
	history := t.newPods.byUID[p.UID]
	if history == nil {
		history = pods.NewHistory(p, t.podPolicy())
		t.newPods.byUID[p.UID] = history
	}
	history.Update(p)
}

func (t *trackedObject) deletePod(uid types.UID) {
	t.timers.isDue = true
	delete(t.newPods.byUID, uid)
}

func (t *trackedObject) podPolicy() pods.Policy {
	r := pods.Policy{FailuresAllowed: t.opts.FailuresAllowed, Unchanged: !t.Changed, AppliedAt: t.observed.serverAppliedAt, MemoryLowered: t.memoryLowered}
	if t.settings.failuresAllowed != nil {
		r.FailuresAllowed = t.settings.failuresAllowed
	}
	if t.status.Rollout != nil {
		r.OldPodsLeaving = t.status.Rollout.Terminating > 0
	}
	return r
}

// markGone notes that the object was deleted; last is its last state, if known.
func (t *trackedObject) markGone(last *unstructured.Unstructured) {
	t.timers.isDue = true
	if last != nil && t.observed.object != nil && last.GetUID() != t.observed.object.GetUID() {
		return
	}
	if last != nil && !isOlder(last, t.observed.object) {
		t.observed.object = last // its last state says whether a Job had finished
	}
	t.observed.isGone = true
}

// isOlder compares resource versions, which grow within one resource.
// https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions
func isOlder(a, b *unstructured.Unstructured) bool {
	if b == nil || a.GetUID() != b.GetUID() {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order < 0
}

// lastWriter returns the field manager that wrote the object last.
func lastWriter(obj *unstructured.Unstructured) string {
	who, at := "an unknown manager", time.Time{}
	for _, f := range obj.GetManagedFields() {
		if f.Subresource != "status" && f.Time != nil && f.Time.After(at) {
			who, at = f.Manager, f.Time.Time
		}
	}
	return who
}

func (t *trackedObject) addNote(text string) {
	if !slices.Contains(t.observed.notes, text) {
		t.observed.notes = append(t.observed.notes, text)
	}
}

const maxEvents = 50 // kept for one object

// addEvent adds an event about the object or one of its pods and reports whether it is new.
// Events from before the apply are ignored.
func (t *trackedObject) addEvent(e Event, pod types.UID, now time.Time) bool {
	if t.Changed && !t.observed.serverAppliedAt.IsZero() && !e.Last.IsZero() && e.Last.Before(t.observed.serverAppliedAt.Add(-time.Second)) {
		return false
	}
	for i := range t.observed.events {
		if old := &t.observed.events[i]; old.Object == e.Object && old.Reason == e.Reason && withoutPodNames(old.Message) == withoutPodNames(e.Message) {
			if e.Count <= old.Count && !e.Last.After(old.Last) {
				return false
			}
			old.Count, old.Last, old.Message = max(e.Count, old.Count), e.Last, e.Message
			t.countEvent(e, pod, now)
			return true
		}
	}
	if t.observed.events = append(t.observed.events, e); len(t.observed.events) > maxEvents {
		t.observed.events = t.observed.events[1:]
	}
	t.countEvent(e, pod, now)
	return true
}

func (t *trackedObject) countEvent(e Event, pod types.UID, now time.Time) {
	if pod != "" {
		if history := t.newPods.byUID[pod]; history != nil {
			history.AddEvent(e.Reason, e.Message, e.Count)
		}
		return
	}
	t.observed.eventCounts[e.Reason] = rules.EventCount{Count: max(t.observed.eventCounts[e.Reason].Count+1, e.Count), Message: singleLine(e.Message)}
	if e.Reason != "FailedCreate" {
		return
	}
	if t.newPods.creationFailure == nil || pods.CreationFailureClass(t.newPods.creationFailure.message) != pods.CreationFailureClass(e.Message) {
		t.newPods.creationFailure = &podCreationFailure{since: now, podsBefore: t.podsCreated()}
	}
	t.newPods.creationFailure.message = singleLine(e.Message)
	t.newPods.creationFailure.count++
}

func singleLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// podsCreated is how many pods the controller has, by its own count.
func (t *trackedObject) podsCreated() int {
	if t.observed.object == nil {
		return 0
	}
	status, _ := t.observed.object.Object["status"].(map[string]any)
	total := 0
	for _, key := range []string{"updatedReplicas", "currentNumberScheduled", "active", "succeeded", "failed"} {
		n, _ := status[key].(int64)
		total += int(n)
	}
	return total
}

// memoryLowered reports whether the release lowered a container's memory limit.
func (t *trackedObject) memoryLowered(container string) bool {
	was, ok := memoryLimit(t.Previous, container)
	is, now := memoryLimit(t.Baseline, container)
	return now && (!ok && t.Previous != nil || ok && is.Cmp(was) < 0)
}

func memoryLimit(obj *unstructured.Unstructured, container string) (resource.Quantity, bool) {
	if obj == nil {
		return resource.Quantity{}, false
	}
	all, _, _ := unstructured.NestedSlice(obj.Object, "spec", "template", "spec", "containers")
	for _, c := range all {
		m, _ := c.(map[string]any)
		if m["name"] != container {
			continue
		}
		limit, found, _ := unstructured.NestedString(m, "resources", "limits", "memory")
		if !found {
			return resource.Quantity{}, false
		}
		q, err := resource.ParseQuantity(limit)
		return q, err == nil
	}
	return resource.Quantity{}, false
}
