package track

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"deployer/internal/kube"
	"deployer/track/watch"
)

// A session is what the parts of a wait share: the cluster and its health, the tracked objects, the
// events and the goroutines. Only the goroutine of the wait may touch its fields, and those of the objects; other
// goroutines send their results through tasks. So nothing here is locked.
//
//	wait ── asks whether objects are ready, reports changes, and knows when it is over
//	 ├─ objectWatches, podWatches, eventWatches ── tell the objects what the API server shows: update, updatePod, addEvent
//	 ├─ missingReferences ── asks for what pods miss
//	 ├─ logFollower ── shows logs
//	 └─ trackedObject ── has what was shown of one object; its evaluation gives its status
//	apiHealth ── stops the clocks of objects while nothing can be shown of them
//
// Each part has the session embedded, and what it asks of other parts as fields.
type session struct {
	cluster *kube.Cluster
	typed   kubernetes.Interface // of the cluster; set when the wait begins
	opts    *Options
	objects []*trackedObject
	onEvent func(Event)
	warned  map[string]bool // texts, each reported once
	tasks   tasks
	health  apiHealth
	fatal   error // ends the wait: credentials refused
	// allNamespaces says that pods and events of all namespaces are watched at once, because the
	// objects are in many.
	allNamespaces bool
}

// warn reports a warning, once.
func (s *session) warn(text string) {
	if !s.warned[text] {
		s.warned[text] = true
		s.onEvent(Event{Kind: Warned, Time: s.opts.Now(), Text: text})
	}
}

// object finds a tracked object by its identity; nil when it isn't tracked.
func (s *session) object(id kube.ID) *trackedObject {
	for _, obj := range s.objects {
		if obj.target.ID == id {
			return obj
		}
	}
	return nil
}

const maxDrain = 1000 // messages taken before statuses are computed

// tasks are the goroutines of a session. They send functions, which the session's own
// goroutine calls in turn, so that only one goroutine touches the session's data.
type tasks struct {
	ctx   context.Context // ends with the session
	group sync.WaitGroup
	inbox chan func()
}

// begin lets tasks run until ctx ends or end is called. end waits for all of them; what they
// still send is dropped.
func (t *tasks) begin(ctx context.Context) (end func()) {
	t.inbox = make(chan func(), 256)
	var stop context.CancelFunc
	t.ctx, stop = context.WithCancel(ctx)
	return func() {
		stop()
		t.group.Wait()
	}
}

// send has the session's goroutine call f, unless the session has ended.
func (t *tasks) send(f func()) {
	select {
	case t.inbox <- f:
	case <-t.ctx.Done():
	}
}

// drain calls what was sent so far.
func (t *tasks) drain() {
	for range maxDrain {
		select {
		case f := <-t.inbox:
			f()
		default:
			return
		}
	}
}

// A watchRequest asks for the objects of one resource, in one namespace or in all.
type watchRequest struct {
	resource           string // for people: "pods"
	namespace          string // empty for all
	source             watch.Source
	query              watch.Query
	handle             func(watch.Event) // called by the session's goroutine
	watchEachNamespace func()            // goes on without the permission for all namespaces
	unavailable        string            // what is missing without the watch, for people
}

// startWatch opens a watch until ctx ends.
func (s *session) startWatch(ctx context.Context, r watchRequest) {
	s.tasks.group.Go(func() {
		err := watch.Watch(ctx, r.source, r.query, func(e watch.Event) {
			s.tasks.send(func() { r.handle(e) })
		})
		if err != nil && ctx.Err() == nil {
			s.tasks.send(func() { s.fallBack(r, err) })
		}
	})
}

// fallBack handles a watch that the API server has refused: it watches each namespace
// instead, or does without.
func (s *session) fallBack(r watchRequest, err error) {
	switch {
	case apierrors.IsUnauthorized(err):
		s.fatal = &unauthorizedError{err}
	case r.namespace != "":
		s.warn(r.unavailable + " unavailable: " + refusalText(err, "list and watch "+r.resource, r.namespace))
	default:
		if !apierrors.IsForbidden(err) {
			s.warn("watching " + r.resource + " in each namespace: " + err.Error())
		}
		r.watchEachNamespace()
	}
}

// refusalText says why the API server refuses to do something in a namespace.
func refusalText(err error, what, namespace string) string {
	if apierrors.IsForbidden(err) {
		return "no permission to " + what + " in namespace " + namespace
	}
	return err.Error()
}
