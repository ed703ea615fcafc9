package track

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"deployer/track/watch"
)

const (
	maxInitialEvents = 500  // of a namespace, read when its watch begins
	maxOrphans       = 1000 // events kept for pods that are not known yet
	maxEventsRead    = 2000 // read at a time of objects of a kind
)

// eventWatches are the watches of warnings, one for each namespace with
// something slow, and whose events they are.
type eventWatches struct {
	namespaces  map[string]bool // of interest
	open        map[string]bool // watched; the empty one is all of them
	owners      map[types.UID]eventOwner
	orphans     map[types.UID][]Event
	orphanCount int
	queued      map[eventQuery]map[types.UID]*trackedObject
}

type eventOwner struct {
	subject *trackedObject
	pod     types.UID // when the event is about one of its pods
}

// addOwner notes whose events those about uid are.
func (w *eventWatches) addOwner(uid types.UID, sub *trackedObject, pod types.UID) {
	if w.owners == nil {
		w.owners = map[types.UID]eventOwner{}
	}
	if _, known := w.owners[uid]; known {
		return
	}
	w.owners[uid] = eventOwner{sub, pod}
	for _, e := range w.orphans[uid] {
		w.orphanCount--
		sub.addEvent(e, pod, sub.opts.Now())
	}
	delete(w.orphans, uid)
}

// watchEvents opens the watch of a namespace's warnings. Normal events are
// many and are asked for one object at a time.
func (s *session) watchEvents(namespace string) {
	if namespace == "" {
		return
	}
	if s.events.namespaces == nil {
		s.events.namespaces, s.events.open = map[string]bool{}, map[string]bool{}
	}
	s.events.namespaces[namespace] = true
	if s.allNamespaces {
		namespace = ""
	}
	if s.events.open[namespace] || s.events.open[""] {
		return
	}
	s.events.open[namespace] = true
	typed, err := s.tracker.cluster.Typed()
	if err != nil {
		return // Wait has used the connection already
	}
	client := typed.CoreV1().Events(namespace)
	source := watch.Source{
		List:  func(ctx ctx, o metav1.ListOptions) (runtime.Object, error) { return client.List(ctx, o) },
		Watch: func(ctx ctx, o metav1.ListOptions) (apiwatch.Interface, error) { return client.Watch(ctx, o) },
	}
	query := watch.Query{Fields: fields.OneTermNotEqualSelector("type", corev1.EventTypeNormal).String(), Limit: maxInitialEvents}
	s.group.Go(func() {
		err := watch.Watch(s.ctx, source, query, func(n watch.Event) bool {
			e, ok := n.Object.(*corev1.Event)
			if !ok || n.Kind != watch.Changed {
				return true
			}
			return s.send(func() { s.handleEvent(e) })
		})
		if err != nil && s.ctx.Err() == nil {
			s.send(func() { s.eventsDenied(namespace, err) })
		}
	})
}

// eventsDenied goes on without events, or with those of one namespace at a time
// when it were all at once that may not be watched.
func (s *session) eventsDenied(namespace string, err error) {
	if apierrors.IsUnauthorized(err) {
		s.fatal = &unauthorizedError{err}
		return
	}
	if namespace != "" {
		s.warn("events unavailable: " + noWatchReason(err, "events", namespace))
		return
	}
	s.allNamespaces = false
	delete(s.events.open, "")
	for name := range s.events.namespaces {
		s.watchEvents(name)
	}
}

func (s *session) handleEvent(raw *corev1.Event) {
	if !s.events.namespaces[raw.Namespace] {
		return
	}
	e := eventOf(raw)
	uid := raw.InvolvedObject.UID
	owner, known := s.events.owners[uid]
	if !known {
		if s.events.orphanCount < maxOrphans {
			if s.events.orphans == nil {
				s.events.orphans = map[types.UID][]Event{}
			}
			s.events.orphans[uid] = append(s.events.orphans[uid], e)
			s.events.orphanCount++
		}
		return
	}
	now := s.opts.Now()
	s.health.heardAt = now
	if owner.subject.status.State.IsFinal() && owner.subject.status.State != Failed {
		return
	}
	if owner.subject.addEvent(e, owner.pod, now) {
		s.dirty[owner.subject] = true
		s.report(Report{Kind: EventSeen, Time: now, Status: Status{ID: owner.subject.ID}, Event: &e, Wanted: owner.subject.settings.showEvents})
	}
}

// eventOf reads an event in its old and its new form.
// https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/
func eventOf(e *corev1.Event) Event {
	out := Event{Type: e.Type, Reason: e.Reason, Message: strings.TrimSpace(e.Message),
		Object: e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name, Count: max(int(e.Count), 1), Last: e.LastTimestamp.Time}
	if e.Series != nil {
		out.Count = max(out.Count, int(e.Series.Count))
		if e.Series.LastObservedTime.After(out.Last) {
			out.Last = e.Series.LastObservedTime.Time
		}
	}
	if out.Last.IsZero() {
		out.Last = e.EventTime.Time
	}
	if out.Last.IsZero() {
		out.Last = e.CreationTimestamp.Time
	}
	return out
}

// eventQuery are objects of one kind in one namespace whose events are to be
// read, normal ones too: of the subject itself, or of one of its pods.
type eventQuery struct {
	namespace, kind string
}

// queueEventRead notes that the events of an object are to be read.
func (s *session) queueEventRead(sub *trackedObject, uid types.UID) {
	if s.events.queued == nil {
		s.events.queued = map[eventQuery]map[types.UID]*trackedObject{}
	}
	key := eventQuery{sub.ID.Namespace, sub.gk.Kind}
	if uid != sub.object.GetUID() {
		key.kind = "Pod"
	}
	if s.events.queued[key] == nil {
		s.events.queued[key] = map[types.UID]*trackedObject{}
	}
	s.events.queued[key][uid] = sub
	sub.inFlight = true
}

// readQueuedEvents reads what was asked for: the events of one object, or in one
// request those of all of its kind.
func (s *session) readQueuedEvents() {
	for key, objects := range s.events.queued {
		for _, selector := range key.selectors(objects) {
			s.group.Go(func() { s.readEventsOf(key, objects, selector) })
		}
	}
	clear(s.events.queued)
}

// selectors find the events of one object, or those that are worth reading of
// a kind: pods have many, and only the autoscaler's are of interest.
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

func (s *session) readEventsOf(key eventQuery, objects map[types.UID]*trackedObject, selector fields.Set) {
	typed, err := s.tracker.cluster.Typed()
	if err != nil {
		return // Wait has used the connection already
	}
	found, err := typed.CoreV1().Events(key.namespace).List(s.ctx, metav1.ListOptions{FieldSelector: selector.String(), Limit: maxEventsRead})
	s.send(func() {
		for _, sub := range objects {
			sub.inFlight, s.dirty[sub] = false, true
			if apierrors.IsForbidden(err) {
				s.eventsForbidden(sub)
			}
		}
		if err != nil {
			return // events are only hints
		}
		for i := range found.Items {
			uid := found.Items[i].InvolvedObject.UID
			if sub := objects[uid]; sub != nil {
				sub.addEvent(eventOf(&found.Items[i]), s.events.owners[uid].pod, s.opts.Now())
			}
		}
	})
}

// eventsForbidden handles that events may not be read. Whether a claim waits for its
// first pod is told by events alone, so that claim can't be judged.
func (s *session) eventsForbidden(sub *trackedObject) {
	s.warn("events unavailable: missing permission to list and watch events in namespace " + sub.ID.Namespace)
	if sub.gk.Kind == "PersistentVolumeClaim" {
		sub.unverifiable = "not verified: without events it can't be told whether the claim waits for its first pod"
		s.dirty[sub] = true
	}
}

// eventReadTimes are the times at which events of an object that waits are read:
// normal events tell of load balancers, volumes and new nodes.
var eventReadTimes = map[string][]time.Duration{
	"PersistentVolumeClaim": {time.Second, 5 * time.Second, 20 * time.Second, time.Minute},
	"Service":               {20 * time.Second, 55 * time.Second},
	"Pod":                   {20 * time.Second, 50 * time.Second}, // that has no node
}
