package track

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"deployer/track/class"
	"deployer/track/pods"
	"deployer/track/rules"
)

// A subject is all that is known about one target. It does no I/O and takes
// every time from its caller, so that recorded sequences can be played to it.
type trackedObject struct {
	Target
	settings settings
	opts     *Options
	gk       schema.GroupKind

	object          *unstructured.Unstructured // as last seen; nil before
	generation      int64                      // generation that the verdict is about
	appliedAt       time.Time                  // t0, by our clock
	serverAppliedAt time.Time                  // of the apply, by the cluster's clock; zero when unknown
	progressedAt    time.Time                  // tp: last progress
	highestCounts   map[string]int             // highest counts so far: more is progress
	failingSince    map[class.Class]time.Time  // tf of problems that pods don't have
	notes           []string

	gone         bool // not there any more
	unverifiable string
	hasStatus    *bool           // its kind has a status subresource
	served       bool            // of a CustomResourceDefinition: its kind answers
	kindOverride *rules.Override // of the definition of its kind; the object's own goes first
	pausedSince  time.Time       // since when nothing can be seen; zero when all is seen
	outages      int             // streams about the object that are out of reach

	revision        string // of the new pods; empty when unknown
	revisionNumber  string // the Deployment's own number of that revision
	pods            map[types.UID]*pods.History
	eventCounts     rules.EventCounts
	events          []Event
	creationFailure *podCreationFailure                // why no pods are created
	isPending       func(Ref) bool                     // whether something on its way makes the object
	workloads       func() (busy bool, calm time.Time) // about the workloads of the session

	rolloutSeen       bool      // it was seen not ready: there is a rollout
	readySince        time.Time // since when its rule calls it ready; zero when it doesn't
	runningAgainSince time.Time // since when containers that have crashed run again; zero when they don't
	stableWaived      bool      // there is no time to see whether it stays so

	status       Status
	recheckAt    time.Time // when time alone may change the status; zero for never
	podsOutdated bool      // it was seen since its new pods were looked for
	computedAt   time.Time // when it was judged last
	slow         bool      // it takes long: its pods and events are looked at
	eventReads   int       // how often events were asked for
	inFlight     bool      // a request about it is on its way
	nextAt       time.Time // when to ask again
}

type podCreationFailure struct {
	message    string
	since      time.Time
	count      int
	podsBefore int // pods there when it was told
}

func newTrackedObject(t Target, opts *Options, now time.Time) *trackedObject {
	s := &trackedObject{Target: t, opts: opts, object: t.Baseline, podsOutdated: true, appliedAt: now, progressedAt: now,
		highestCounts: map[string]int{}, failingSince: map[class.Class]time.Time{}, pods: map[types.UID]*pods.History{}, eventCounts: rules.EventCounts{}}
	s.settings = settingsOf(t.Baseline)
	s.gk = t.ID.GroupKind()
	if t.Baseline != nil {
		s.generation = t.Baseline.GetGeneration()
		for _, f := range t.Baseline.GetManagedFields() {
			if f.Time != nil && f.Time.After(s.serverAppliedAt) {
				s.serverAppliedAt = f.Time.Time
			}
		}
	}
	s.status = Status{ID: t.ID, State: Waiting}
	if s.gk == definitionKind && t.Baseline != nil {
		s.served = opts.Rules.Evaluate(s.ruleInput(now)).Phase == rules.Ready // it was there before
	}
	if s.gk == podKind && t.Baseline != nil && t.Until != UntilGone {
		s.updateBarePod(t.Baseline)
	}
	return s
}

// update takes the object as the API server shows it.
func (s *trackedObject) update(obj *unstructured.Unstructured, now time.Time) {
	if s.object != nil && isOlder(obj, s.object) {
		return // the list or the watch was behind what we have
	}
	anew := s.Awaited && s.Baseline != nil && obj.GetUID() != s.Baseline.GetUID()
	if anew || s.Baseline == nil && s.Until != UntilGone {
		s.Target.Baseline = obj
		s.settings = settingsOf(obj)
		s.generation = obj.GetGeneration()
	}
	s.object, s.gone, s.podsOutdated = obj, false, true
	if g := obj.GetGeneration(); g > s.generation && s.generation > 0 {
		if s.generation > 0 && s.Baseline != nil {
			s.addNote("changed by " + lastWriter(obj) + " during the rollout")
		}
		s.generation, s.progressedAt = g, now
		clear(s.failingSince)
	}
	if s.gk == podKind {
		s.updateBarePod(obj)
	}
}

var podKind = schema.GroupKind{Kind: "Pod"}

// followBarePod follows a pod that is tracked itself.
func (s *trackedObject) updateBarePod(obj *unstructured.Unstructured) {
	var p corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &p); err == nil {
		s.updatePod(pods.Trim(&p))
	}
}

// updatePod takes a pod of the new revision.
func (s *trackedObject) updatePod(p pods.Pod) {
	m := s.pods[p.UID]
	if m == nil {
		m = pods.NewHistory(p, s.podPolicy())
		s.pods[p.UID] = m
	}
	m.Update(p)
}

func (s *trackedObject) deletePod(uid types.UID) { delete(s.pods, uid) }

func (s *trackedObject) podPolicy() pods.Policy {
	r := pods.Policy{FailuresAllowed: s.opts.FailuresAllowed, Unchanged: !s.Changed, AppliedAt: s.serverAppliedAt, MemoryLowered: s.memoryLowered}
	if s.settings.failuresAllowed != nil {
		r.FailuresAllowed = s.settings.failuresAllowed
	}
	if s.status.Rollout != nil {
		r.OldPodsLeaving = s.status.Rollout.Terminating > 0
	}
	return r
}

// markGone takes that the object isn't there any more.
func (s *trackedObject) markGone(last *unstructured.Unstructured) {
	if last != nil && s.object != nil && last.GetUID() != s.object.GetUID() {
		return
	}
	if last != nil && !isOlder(last, s.object) {
		s.object = last // its last state tells whether a Job had finished
	}
	s.gone = true
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

// lastWriter names who wrote the object last.
func lastWriter(obj *unstructured.Unstructured) string {
	who, at := "somebody", time.Time{}
	for _, f := range obj.GetManagedFields() {
		if f.Subresource != "status" && f.Time != nil && f.Time.After(at) {
			who, at = f.Manager, f.Time.Time
		}
	}
	return who
}

func (s *trackedObject) addNote(text string) {
	for _, n := range s.notes {
		if n == text {
			return
		}
	}
	s.notes = append(s.notes, text)
}

const maxEvents = 50 // kept for one object

// addEvent takes an event about the object or, with a pod, about that pod.
// Counts of events from before the apply are no news.
func (s *trackedObject) addEvent(e Event, pod types.UID, now time.Time) bool {
	if s.Changed && !s.serverAppliedAt.IsZero() && !e.Last.IsZero() && e.Last.Before(s.serverAppliedAt.Add(-time.Second)) {
		return false
	}
	for i := range s.events {
		if old := &s.events[i]; old.Object == e.Object && old.Reason == e.Reason && withoutPodNames(old.Message) == withoutPodNames(e.Message) {
			if e.Count <= old.Count && !e.Last.After(old.Last) {
				return false
			}
			old.Count, old.Last, old.Message = max(e.Count, old.Count), e.Last, e.Message
			s.countEvent(e, pod, now)
			return true
		}
	}
	if s.events = append(s.events, e); len(s.events) > maxEvents {
		s.events = s.events[1:]
	}
	s.countEvent(e, pod, now)
	return true
}

func (s *trackedObject) countEvent(e Event, pod types.UID, now time.Time) {
	if pod != "" {
		if m := s.pods[pod]; m != nil {
			m.AddEvent(e.Reason, e.Message, e.Count, now)
		}
		return
	}
	s.eventCounts[e.Reason] = rules.EventCount{Count: max(s.eventCounts[e.Reason].Count+1, e.Count), Message: singleLine(e.Message)}
	if e.Reason != "FailedCreate" {
		return
	}
	if s.creationFailure == nil || pods.CreationFailureClass(s.creationFailure.message) != pods.CreationFailureClass(e.Message) {
		s.creationFailure = &podCreationFailure{since: now, podsBefore: s.podsCreated()}
	}
	s.creationFailure.message = singleLine(e.Message)
	s.creationFailure.count++
}

func singleLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// podsCreated is how many pods the controller has, by its own count.
func (s *trackedObject) podsCreated() int {
	if s.object == nil {
		return 0
	}
	status, _ := s.object.Object["status"].(map[string]any)
	total := 0
	for _, key := range []string{"updatedReplicas", "currentNumberScheduled", "active", "succeeded", "failed"} {
		n, _ := status[key].(int64)
		total += int(n)
	}
	return total
}

// pauseTimers stops the clocks: a stream about the object is out of reach.
func (s *trackedObject) pauseTimers(now time.Time) {
	if s.outages++; s.outages == 1 {
		s.pausedSince = now
	}
}

// resumeTimers lets the clocks go on when all streams are back.
func (s *trackedObject) resumeTimers(now time.Time) {
	if s.outages--; s.outages == 0 {
		s.shiftTimers(now.Sub(s.pausedSince))
		s.pausedSince = time.Time{}
	}
}

// shiftTimers moves all clocks on by a time in which the API server was out of reach.
func (s *trackedObject) shiftTimers(d time.Duration) {
	s.appliedAt, s.progressedAt = s.appliedAt.Add(d), s.progressedAt.Add(d)
	for c, at := range s.failingSince {
		s.failingSince[c] = at.Add(d)
	}
	if s.creationFailure != nil {
		s.creationFailure.since = s.creationFailure.since.Add(d)
	}
	for _, m := range s.pods {
		m.ShiftTimers(d)
	}
}

// memoryLowered reports whether the release lowered a container's memory limit.
func (s *trackedObject) memoryLowered(container string) bool {
	was, ok := memoryLimit(s.Previous, container)
	is, now := memoryLimit(s.Baseline, container)
	return now && (!ok && s.Previous != nil || ok && is.Cmp(was) < 0)
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
