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
type subject struct {
	Target
	settings
	opts *Options
	gk   schema.GroupKind

	object     *unstructured.Unstructured // as last seen; nil before
	base       int64                      // generation that the verdict is about
	applied    time.Time                  // t0, by our clock
	serverTime time.Time                  // of the apply, by the cluster's clock; zero when unknown
	progressed time.Time                  // tp: last progress
	marks      map[string]int             // highest counts so far: more is progress
	since      map[class.Class]time.Time  // tf of problems that pods don't have
	notes      []string

	gone      bool // not there any more
	denied    string
	hasStatus *bool           // its kind has a status subresource
	served    bool            // of a CustomResourceDefinition: its kind answers
	ofKind    *rules.Override // of the definition of its kind; the object's own goes first
	frozen    time.Time       // since when nothing can be seen; zero when all is seen
	blindness int             // streams about the object that are out of reach

	revision   string // of the new pods; empty when unknown
	revisionOf string // the Deployment's own number of that revision
	pods       map[types.UID]*pods.Memory
	signals    rules.Signals
	events     []Event
	creation   *told                              // why no pods are created
	pending    func(Ref) bool                     // whether something on its way makes the object
	others     func() (busy bool, calm time.Time) // about the workloads of the session

	rolling    bool      // it was seen not ready: there is a rollout
	readySince time.Time // since when its rule calls it ready; zero when it doesn't
	restarted  time.Time // since when containers that have crashed run again; zero when they don't
	hurried    bool      // there is no time to see whether it stays so

	status Status
	due    time.Time // when time alone may change the status; zero for never
	moved  bool      // it was seen since its new pods were looked for
	judged time.Time // when it was judged last
	slow   bool      // it takes long: its pods and events are looked at
	looks  int       // how often events were asked for
	asking bool      // a request about it is on its way
	askAt  time.Time // when to ask again
}

type told struct {
	message string
	since   time.Time
	count   int
	created int // pods there when it was told
}

func newSubject(t Target, opts *Options, now time.Time) *subject {
	s := &subject{Target: t, opts: opts, object: t.Baseline, moved: true, applied: now, progressed: now,
		marks: map[string]int{}, since: map[class.Class]time.Time{}, pods: map[types.UID]*pods.Memory{}, signals: rules.Signals{}}
	s.settings = settingsOf(t.Baseline)
	s.gk = t.ID.GroupKind()
	if t.Baseline != nil {
		s.base = t.Baseline.GetGeneration()
		for _, f := range t.Baseline.GetManagedFields() {
			if f.Time != nil && f.Time.After(s.serverTime) {
				s.serverTime = f.Time.Time
			}
		}
	}
	s.status = Status{ID: t.ID, State: Waiting}
	if s.gk == definitionKind && t.Baseline != nil {
		s.served = opts.Rules.Judge(s.input(now)).Phase == rules.Ready // it was there before
	}
	if s.gk == podKind && t.Baseline != nil && t.Until != UntilGone {
		s.seeBare(t.Baseline)
	}
	return s
}

// see takes the object as the API server shows it.
func (s *subject) see(obj *unstructured.Unstructured, now time.Time) {
	if s.object != nil && older(obj, s.object) {
		return // the list or the watch was behind what we have
	}
	anew := s.Awaited && s.Baseline != nil && obj.GetUID() != s.Baseline.GetUID()
	if anew || s.Baseline == nil && s.Until != UntilGone {
		s.Target.Baseline = obj
		s.settings = settingsOf(obj)
		s.base = obj.GetGeneration()
	}
	s.object, s.gone, s.moved = obj, false, true
	if g := obj.GetGeneration(); g > s.base && s.base > 0 {
		if s.base > 0 && s.Baseline != nil {
			s.note("changed by " + writer(obj) + " during the rollout")
		}
		s.base, s.progressed = g, now
		clear(s.since)
	}
	if s.gk == podKind {
		s.seeBare(obj)
	}
}

var podKind = schema.GroupKind{Kind: "Pod"}

// seeBare follows a pod that is tracked itself.
func (s *subject) seeBare(obj *unstructured.Unstructured) {
	var p corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &p); err == nil {
		s.seePod(pods.Trim(&p))
	}
}

// seePod takes a pod of the new revision.
func (s *subject) seePod(p pods.Pod) {
	m := s.pods[p.UID]
	if m == nil {
		m = pods.Remember(p, s.podRules())
		s.pods[p.UID] = m
	}
	m.See(p)
}

func (s *subject) dropPod(uid types.UID) { delete(s.pods, uid) }

func (s *subject) podRules() pods.Rules {
	r := pods.Rules{Allowed: s.opts.FailuresAllowed, Unchanged: !s.Changed, Applied: s.serverTime, Lowered: s.lowered}
	if s.settings.Allowed != nil {
		r.Allowed = s.settings.Allowed
	}
	if s.status.Rollout != nil {
		r.Room = s.status.Rollout.Terminating > 0
	}
	return r
}

// lose takes that the object isn't there any more.
func (s *subject) lose(last *unstructured.Unstructured) {
	if last != nil && s.object != nil && last.GetUID() != s.object.GetUID() {
		return
	}
	if last != nil && !older(last, s.object) {
		s.object = last // its last state tells whether a Job had finished
	}
	s.gone = true
}

// older compares resource versions, which grow within one resource.
// https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions
func older(a, b *unstructured.Unstructured) bool {
	if b == nil || a.GetUID() != b.GetUID() {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order < 0
}

// writer names who wrote the object last.
func writer(obj *unstructured.Unstructured) string {
	who, at := "somebody", time.Time{}
	for _, f := range obj.GetManagedFields() {
		if f.Subresource != "status" && f.Time != nil && f.Time.After(at) {
			who, at = f.Manager, f.Time.Time
		}
	}
	return who
}

func (s *subject) note(text string) {
	for _, n := range s.notes {
		if n == text {
			return
		}
	}
	s.notes = append(s.notes, text)
}

const maxEvents = 50 // kept for one object

// tell takes an event about the object or, with a pod, about that pod.
// Counts of events from before the apply are no news.
func (s *subject) tell(e Event, pod types.UID, now time.Time) bool {
	if s.Changed && !s.serverTime.IsZero() && !e.Last.IsZero() && e.Last.Before(s.serverTime.Add(-time.Second)) {
		return false
	}
	for i := range s.events {
		if old := &s.events[i]; old.Object == e.Object && old.Reason == e.Reason && normal(old.Message) == normal(e.Message) {
			if e.Count <= old.Count && !e.Last.After(old.Last) {
				return false
			}
			old.Count, old.Last, old.Message = max(e.Count, old.Count), e.Last, e.Message
			s.heed(e, pod, now)
			return true
		}
	}
	if s.events = append(s.events, e); len(s.events) > maxEvents {
		s.events = s.events[1:]
	}
	s.heed(e, pod, now)
	return true
}

func (s *subject) heed(e Event, pod types.UID, now time.Time) {
	if pod != "" {
		if m := s.pods[pod]; m != nil {
			m.Tell(e.Reason, e.Message, e.Count, now)
		}
		return
	}
	s.signals[e.Reason] = rules.Signal{Count: max(s.signals[e.Reason].Count+1, e.Count), Message: oneLine(e.Message)}
	if e.Reason != "FailedCreate" {
		return
	}
	if s.creation == nil || pods.Creation(s.creation.message) != pods.Creation(e.Message) {
		s.creation = &told{since: now, created: s.created()}
	}
	s.creation.message = oneLine(e.Message)
	s.creation.count++
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// created is how many pods the controller has, by its own count.
func (s *subject) created() int {
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

// blind stops the clocks: a stream about the object is out of reach.
func (s *subject) blind(now time.Time) {
	if s.blindness++; s.blindness == 1 {
		s.frozen = now
	}
}

// sighted lets the clocks go on when all streams are back.
func (s *subject) sighted(now time.Time) {
	if s.blindness--; s.blindness == 0 {
		s.freeze(now.Sub(s.frozen))
		s.frozen = time.Time{}
	}
}

// freeze moves all clocks on by a time in which the API server was out of reach.
func (s *subject) freeze(d time.Duration) {
	s.applied, s.progressed = s.applied.Add(d), s.progressed.Add(d)
	for c, at := range s.since {
		s.since[c] = at.Add(d)
	}
	if s.creation != nil {
		s.creation.since = s.creation.since.Add(d)
	}
	for _, m := range s.pods {
		m.Freeze(d)
	}
}

// lowered reports whether the release lowered a container's memory limit.
func (s *subject) lowered(container string) bool {
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
