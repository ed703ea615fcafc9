package track

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"deployer/internal/kube"
	"deployer/track/finding"
	"deployer/track/rules"
	"deployer/track/watch"
)

const (
	maxInitialEvents = 500  // of a namespace, read when its watch begins
	maxUnowned       = 1000 // events kept for pods that are not known yet
	maxEventsRead    = 2000 // read at a time of objects of a kind
	maxEvents        = 50   // kept for one object
)

// eventWatches are the watches of warning events, one for each namespace with a slow
// rollout, and the objects that own the events.
type eventWatches struct {
	*session
	namespaces   map[string]bool // with slow rollouts
	open         map[string]bool // watched; the empty name stands for all namespaces
	owners       map[types.UID]eventOwner
	unowned      map[types.UID][]finding.Event // of pods that are not known yet
	unownedCount int
	queued       map[eventQuery]map[types.UID]*trackedObject
}

func newEventWatches(s *session) eventWatches {
	return eventWatches{session: s, namespaces: map[string]bool{}, open: map[string]bool{}, owners: map[types.UID]eventOwner{},
		unowned: map[types.UID][]finding.Event{}, queued: map[eventQuery]map[types.UID]*trackedObject{}}
}

type eventOwner struct {
	object *trackedObject
	pod    types.UID // when the event is about one of its pods
}

// addOwner records that events about uid belong to obj, or to one of its pods.
func (w *eventWatches) addOwner(uid types.UID, obj *trackedObject, pod types.UID) {
	if _, known := w.owners[uid]; known {
		return
	}
	w.owners[uid] = eventOwner{obj, pod}
	for _, e := range w.unowned[uid] {
		w.unownedCount--
		obj.addEvent(e, pod, obj.opts.Now())
	}
	delete(w.unowned, uid)
}

// watch opens the watch of a namespace's warnings. Normal events are many and are asked
// for one object at a time.
func (w *eventWatches) watch(namespace string) {
	if namespace == "" {
		return
	}
	w.namespaces[namespace] = true
	if w.allNamespaces {
		namespace = ""
	}
	if w.open[namespace] || w.open[""] {
		return
	}
	w.open[namespace] = true
	query := watch.Query{Fields: fields.OneTermNotEqualSelector("type", corev1.EventTypeNormal).String(), Limit: maxInitialEvents}
	w.startWatch(w.tasks.ctx, watchRequest{
		resource: "events", namespace: namespace, source: watch.SourceOf(w.typed.CoreV1().Events(namespace)), query: query,
		handle: w.handle, watchEachNamespace: w.watchEachNamespace, unavailable: "events",
	})
}

// watchEachNamespace watches each namespace of interest in place of all namespaces.
func (w *eventWatches) watchEachNamespace() {
	w.allNamespaces = false
	delete(w.open, "")
	for name := range w.namespaces {
		w.watch(name)
	}
}

func (w *eventWatches) handle(e watch.Event) {
	raw, ok := e.Object.(*corev1.Event)
	if !ok || e.Kind != watch.Changed || !w.namespaces[raw.Namespace] {
		return
	}
	event, uid := eventOf(raw), raw.InvolvedObject.UID
	owner, known := w.owners[uid]
	if !known {
		if w.unownedCount < maxUnowned {
			w.unowned[uid] = append(w.unowned[uid], event)
			w.unownedCount++
		}
		return
	}
	now := w.opts.Now()
	w.health.recordAnswer()
	if owner.object.status.State.IsFinal() && owner.object.status.State != Failed {
		return
	}
	if owner.object.addEvent(event, owner.pod, now) {
		owner.object.schedule.isDue = true
		w.onEvent(Event{Kind: EventSeen, Time: now, Status: Status{ID: owner.object.target.ID}, Seen: &event, ShowEvent: owner.object.settings.showEvents})
	}
}

// eventOf reads an event in its old and its new form.
// https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/
func eventOf(e *corev1.Event) finding.Event {
	out := finding.Event{Type: e.Type, Reason: e.Reason, Message: strings.TrimSpace(e.Message),
		Object: e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name, Count: max(int(e.Count), 1), Last: e.LastTimestamp.Time}
	if e.Series != nil {
		out.Count = max(out.Count, int(e.Series.Count))
		if e.Series.LastObservedTime.After(out.Last) {
			out.Last = e.Series.LastObservedTime.Time
		}
	}
	out.Last = cmp.Or(out.Last, e.EventTime.Time, e.CreationTimestamp.Time)
	return out
}

// An eventLog has the events about an object and its pods.
type eventLog struct {
	counts rules.EventCounts // of those about the object itself
	kept   []finding.Event   // newest last, at most maxEvents
}

// add keeps an event, in place of an earlier one about the same. It returns false when the
// event is known.
func (l *eventLog) add(e finding.Event) bool {
	i := slices.IndexFunc(l.kept, func(old finding.Event) bool {
		return old.Object == e.Object && old.Reason == e.Reason && withoutPodNames(old.Message) == withoutPodNames(e.Message)
	})
	if i < 0 {
		l.kept = append(l.kept, e)
		l.kept = l.kept[max(0, len(l.kept)-maxEvents):]
		return true
	}
	old := &l.kept[i]
	if e.Count <= old.Count && !e.Last.After(old.Last) {
		return false
	}
	old.Count, old.Last, old.Message = max(e.Count, old.Count), e.Last, e.Message
	return true
}

// withoutPodNames writes a message without what differs from pod to pod.
func withoutPodNames(message string) string {
	fields := strings.Fields(message)
	for i, f := range fields {
		if strings.ContainsAny(f, "0123456789") && !strings.Contains(f, "/") {
			fields[i] = "#"
		}
	}
	return strings.Join(fields, " ")
}

// An eventQuery selects the events of objects of one kind in one namespace. Unlike the
// watch it also finds normal events.
type eventQuery struct {
	namespace, kind string
}

// queueRead records that the events of an object are to be read.
func (w *eventWatches) queueRead(obj *trackedObject, uid types.UID) {
	key := eventQuery{obj.target.ID.Namespace, obj.gk.Kind}
	if uid != obj.observed.object.GetUID() {
		key.kind = "Pod"
	}
	if w.queued[key] == nil {
		w.queued[key] = map[types.UID]*trackedObject{}
	}
	w.queued[key][uid] = obj
	obj.lookups.inFlight = true
}

// readQueued reads what was asked for: the events of one object, or in one
// request those of all of its kind.
func (w *eventWatches) readQueued() {
	for key, objects := range w.queued {
		for _, selector := range key.selectors(objects) {
			w.tasks.group.Go(func() { w.read(key, objects, selector) })
		}
	}
	clear(w.queued)
}

// selectors returns the field selectors of a query. One object is selected by its UID,
// several by their kind. Of pods, which have many events, only the autoscaler's are read.
func (k eventQuery) selectors(objects map[types.UID]*trackedObject) []fields.Set {
	switch {
	case len(objects) == 1:
		for uid := range objects {
			return []fields.Set{{"involvedObject.uid": string(uid)}}
		}
	case k.kind == "Pod":
		return []fields.Set{{"reason": "TriggeredScaleUp"}, {"reason": "NotTriggerScaleUp"}}
	}
	return []fields.Set{{"involvedObject.kind": k.kind}}
}

func (w *eventWatches) read(key eventQuery, objects map[types.UID]*trackedObject, selector fields.Set) {
	found, err := w.typed.CoreV1().Events(key.namespace).List(w.tasks.ctx, metav1.ListOptions{FieldSelector: selector.String(), Limit: maxEventsRead})
	w.tasks.send(func() {
		for _, obj := range objects {
			obj.lookups.inFlight, obj.schedule.isDue = false, true
			if !apierrors.IsForbidden(err) {
				continue
			}
			w.warn("events unavailable: " + refusalText(err, "list and watch events", obj.target.ID.Namespace))
			if obj.gk == kube.PersistentVolumeClaimKind { // only an event says that it waits for its first pod
				obj.observed.unverifiable = "not verified: without events it is unknown whether the claim waits for its first pod"
			}
		}
		if err != nil {
			return // events are only hints
		}
		for i := range found.Items {
			uid := found.Items[i].InvolvedObject.UID
			if obj := objects[uid]; obj != nil {
				obj.addEvent(eventOf(&found.Items[i]), w.owners[uid].pod, w.opts.Now())
			}
		}
	})
}

// unscheduledReadTimes are the times after which events of a pod are read that has no node: normal ones tell of new nodes.
var unscheduledReadTimes = []time.Duration{20 * time.Second, 50 * time.Second}
