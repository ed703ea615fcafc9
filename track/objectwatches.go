package track

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/internal/kube"
	"deployer/track/rules"
	"deployer/track/watch"
)

const (
	// manyNamespaces is how many namespaces are watched one by one. Each is a stream
	// of the connection, so with more of them one watch of all is tried first.
	manyNamespaces = 5
	// readsPerSecond is how many single objects are read where no watch is permitted.
	readsPerSecond = 10
)

// objectWatches are the watches of the tracked objects. Each step of the fallback needs fewer
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
type objectWatches struct {
	*session
	events    *eventWatches
	logs      *logFollower
	open      []*objectWatch
	readLimit *rate.Limiter // of the single reads of all watches
}

// add watches an object, together with others of its resource in its namespace.
func (w *objectWatches) add(obj *trackedObject, mapping kube.Mapping) {
	for _, o := range w.open {
		if o.mapping.Resource == mapping.Resource && o.namespace == obj.target.ID.Namespace {
			o.add(obj)
			return
		}
	}
	o := newObjectWatch(w, mapping, obj.target.ID.Namespace)
	o.add(obj)
	w.open = append(w.open, o)
}

// mapping finds the mapping of an object's kind. If the kind is unknown, discovery is read
// again, because this release may have defined it. If the kind isn't served, the object is
// gone. That is an error for one that may appear later: nobody would see it.
func (w *objectWatches) mapping(ctx context.Context, obj *trackedObject) (mapping kube.Mapping, served bool, err error) {
	mapping, err = w.cluster.Mapping(ctx, obj.target.GVK, true)
	var unknown *kube.NoKindMatchError
	if errors.As(err, &unknown) && obj.target.Until != UntilGone {
		w.cluster.ForgetKinds()
		mapping, err = w.cluster.Mapping(ctx, obj.target.GVK, true)
	}
	switch {
	case err == nil:
		obj.observed.hasStatus = new(mapping.HasStatus || rules.IsCustom(obj.gk) && w.declaresStatus(ctx, mapping.GVK))
		return mapping, true, nil
	case !errors.As(err, &unknown) || obj.target.MayAppearLater:
		return mapping, false, err
	}
	obj.markGone(nil)
	return mapping, false, nil
}

// declaresStatus reports whether the schema of a kind without a status subresource has a status. One that can't be read
// has none.
func (w *objectWatches) declaresStatus(ctx context.Context, gvk schema.GroupVersionKind) bool {
	ctx, stop := context.WithTimeout(ctx, lookupTimeout)
	defer stop()
	types, err := w.cluster.TypeConverter(ctx, gvk.GroupVersion())
	if err != nil || types == nil {
		return false
	}
	empty := &unstructured.Unstructured{Object: map[string]any{}}
	empty.SetGroupVersionKind(gvk)
	object, err := types.ObjectToTyped(empty)
	if err != nil {
		return false
	}
	atom, known := object.Schema().Resolve(object.TypeRef())
	if !known || atom.Map == nil {
		return false
	}
	_, has := atom.Map.FindField("status")
	return has
}

// start opens the watches of all resources.
func (w *objectWatches) start() {
	byResource := map[schema.GroupVersionResource][]*objectWatch{}
	for _, o := range w.open {
		byResource[o.mapping.Resource] = append(byResource[o.mapping.Resource], o)
	}
	for _, group := range byResource {
		if len(group) > manyNamespaces && w.startAllNamespaces(group) {
			continue
		}
		for _, o := range group {
			o.start()
		}
	}
}

// startAllNamespaces opens one watch of all namespaces in place of the watches of a group.
// It returns false when the objects have no labels in common that could select them.
func (w *objectWatches) startAllNamespaces(group []*objectWatch) bool {
	var all []*trackedObject
	for _, o := range group {
		all = append(all, o.outage.objects...)
	}
	query := watch.Query{Labels: commonLabels(all), From: startVersion(all)}
	if query.Labels == "" {
		return false
	}
	w.allNamespaces = true
	ctx, stop := context.WithCancel(w.tasks.ctx)
	for _, o := range group {
		o.query = query
	}
	w.tasks.group.Go(func() {
		defer stop()
		for _, o := range group {
			<-o.ctx.Done()
		}
	})
	w.startWatch(ctx, watchRequest{
		resource: group[0].mapping.Resource.GroupResource().String(), source: watch.SourceOf(w.cluster.ResourceClient(group[0].mapping, "")), query: query,
		handle: func(e watch.Event) { dispatch(group, e) },
		watchEachNamespace: func() {
			for _, o := range group {
				o.start()
			}
		},
	})
	return true
}

// closeUnneeded closes the watches of objects whose status is final, and records whether any
// of the other watches has an answer.
func (w *objectWatches) closeUnneeded(now time.Time) {
	unanswered := 0
	w.open = slices.DeleteFunc(w.open, func(o *objectWatch) bool {
		if o.outage.isNeeded() {
			unanswered += min(o.unanswered, 1)
			return false
		}
		o.stop()
		w.health.end(&o.outage)
		return true
	})
	w.health.setAllUnseen(w.health.storage.active || unanswered > 0 && unanswered == len(w.open), now)
}
