package track

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/internal/kube"
	"deployer/track/watch"
)

const (
	// manyNamespaces is how many namespaces are watched one by one. Each is a stream
	// of the connection, so with more of them one watch of all is tried first.
	manyNamespaces = 5
	// readsPerSecond is how many single objects are read where no watch is permitted.
	readsPerSecond = 10
)

// watches opens all watches of a wait. Each step of the fallback needs fewer
// permissions than the one before:
//
//  1. all namespaces at once, where the objects are in many
//  2. one namespace
//  3. each object by its name
//  4. each object read from time to time
//  5. each object by dry runs that change nothing
//
// The names of pods and events aren't known beforehand, so their fallback ends with step 2.
// Steps 3 to 5 are those of [watch.WatchWithFallback].
type watches struct {
	session       *session
	objects       []*objectWatch
	readLimit     *rate.Limiter // of the single reads of all watches
	allNamespaces bool          // pods and events of all namespaces are watched at once
}

func newWatches(s *session) watches {
	return watches{session: s, readLimit: rate.NewLimiter(readsPerSecond, 1)}
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

// start opens a watch until ctx ends.
func (w *watches) start(ctx context.Context, r watchRequest) {
	tasks := &w.session.tasks
	tasks.group.Go(func() {
		err := watch.Watch(ctx, r.source, r.query, func(e watch.Event) bool {
			return tasks.send(func() { r.handle(e) })
		})
		if err != nil && ctx.Err() == nil {
			tasks.send(func() { w.fallBack(r, err) })
		}
	})
}

// fallBack handles a watch that the API server has refused: it watches each namespace
// instead, or does without.
func (w *watches) fallBack(r watchRequest, err error) {
	switch {
	case apierrors.IsUnauthorized(err):
		w.session.progress.fatal = &unauthorizedError{err}
	case r.namespace != "":
		w.session.warn(r.unavailable + " unavailable: " + noWatchReason(err, r.resource, r.namespace))
	default:
		if !apierrors.IsForbidden(err) {
			w.session.warn("watching " + r.resource + " in each namespace: " + err.Error())
		}
		r.watchEachNamespace()
	}
}

// noWatchReason says why objects of a namespace aren't watched.
func noWatchReason(err error, resource, namespace string) string {
	if apierrors.IsForbidden(err) {
		return "no permission to list and watch " + resource + " in namespace " + namespace
	}
	return err.Error()
}

// openAll watches all targets that aren't ready, by resource and namespace.
func (w *watches) openAll(ctx context.Context) error {
	type key struct {
		resource  schema.GroupVersionResource
		namespace string
	}
	known := map[key]*objectWatch{}
	for _, obj := range w.session.objects {
		if obj.status.State.IsFinal() {
			continue
		}
		mapping, served, err := w.mapping(ctx, obj)
		if err != nil {
			return err
		}
		if w.session.updateStatus(obj, w.session.opts.Now()); !served || obj.status.State.IsFinal() {
			continue
		}
		k := key{mapping.Resource, obj.ID.Namespace}
		if known[k] == nil {
			known[k] = newObjectWatch(w, mapping, obj.ID.Namespace)
			w.objects = append(w.objects, known[k])
		}
		known[k].add(obj)
	}
	return w.startObjects()
}

// mapping finds the mapping of a target's kind. If the kind is unknown, discovery is read
// again, because this release may have defined it. If the kind isn't served, the target is
// gone or unverifiable.
func (w *watches) mapping(ctx context.Context, obj *trackedObject) (mapping kube.Mapping, served bool, err error) {
	gvk := obj.GVK
	if gvk.Empty() {
		gvk = obj.ID.GroupKind().WithVersion("")
	}
	cluster := w.session.tracker.cluster
	mapping, err = cluster.Mapping(ctx, gvk, true)
	var unknown *kube.NoKindMatchError
	if errors.As(err, &unknown) && obj.Until != UntilGone {
		cluster.ForgetKinds()
		mapping, err = cluster.Mapping(ctx, gvk, true)
	}
	switch {
	case err == nil:
		obj.observed.hasStatusSubresource = &mapping.HasStatus
		return mapping, true, nil
	case !errors.As(err, &unknown):
		return mapping, false, err
	case obj.Until == UntilGone:
		obj.observed.isGone = true
	default:
		obj.observed.unverifiable = "not verified: " + err.Error()
	}
	return mapping, false, nil
}

// startObjects opens the watches of all resources.
func (w *watches) startObjects() error {
	byResource := map[schema.GroupVersionResource][]*objectWatch{}
	for _, o := range w.objects {
		byResource[o.mapping.Resource] = append(byResource[o.mapping.Resource], o)
	}
	for _, group := range byResource {
		if len(group) > manyNamespaces && w.startAllNamespaces(group) {
			continue
		}
		for _, o := range group {
			if err := o.start(); err != nil {
				return err
			}
		}
	}
	return nil
}

// startAllNamespaces opens one watch of all namespaces in place of the watches of a group.
// It returns false when the targets have no labels in common that could select them.
func (w *watches) startAllNamespaces(group []*objectWatch) bool {
	var all []*trackedObject
	for _, o := range group {
		all = append(all, o.outage.objects...)
	}
	query := watch.Query{Labels: commonLabels(all), From: startVersion(all)}
	client, err := w.session.tracker.cluster.ResourceClient(group[0].mapping, "")
	if err != nil || query.Labels == "" {
		return false
	}
	w.allNamespaces = true
	ctx, stop := context.WithCancel(w.session.tasks.ctx)
	for _, o := range group {
		o.query = query
	}
	w.session.tasks.group.Go(func() {
		defer stop()
		for _, o := range group {
			<-o.ctx.Done()
		}
	})
	w.start(ctx, watchRequest{
		resource: group[0].mapping.Resource.GroupResource().String(), source: watch.SourceOf(client), query: query,
		handle: func(e watch.Event) { dispatch(group, e) },
		watchEachNamespace: func() {
			for _, o := range group {
				if err := o.start(); err != nil {
					w.session.progress.fatal = err
				}
			}
		},
	})
	return true
}

// closeUnneeded closes the watches of objects whose status is final, and notes whether any
// of the other watches has an answer.
func (w *watches) closeUnneeded(now time.Time) {
	unanswered := 0
	w.objects = slices.DeleteFunc(w.objects, func(o *objectWatch) bool {
		if o.isNeeded() {
			unanswered += min(o.unanswered, 1)
			return false
		}
		o.close()
		return true
	})
	health := &w.session.health
	health.setAllUnseen(health.storage.active || unanswered > 0 && unanswered == len(w.objects), now)
}
