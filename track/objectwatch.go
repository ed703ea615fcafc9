package track

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"deployer/internal/kube"
	"deployer/track/watch"
)

// An objectWatch watches the objects of one resource in one namespace, until the status
// of all of them is final.
type objectWatch struct {
	watches       *objectWatches
	ctx           context.Context
	stop          context.CancelFunc
	mapping       kube.Mapping
	namespace     string
	objects       map[string]*trackedObject // by name
	query         watch.Query
	watchedByName map[string]bool // although the query is by labels
	outage        outage
	unanswered    int // streams without an answer; if there is any, there is an outage
}

func newObjectWatch(w *objectWatches, mapping kube.Mapping, namespace string) *objectWatch {
	o := &objectWatch{watches: w, mapping: mapping, namespace: namespace,
		objects: map[string]*trackedObject{}, watchedByName: map[string]bool{}}
	o.ctx, o.stop = context.WithCancel(w.tasks.ctx)
	o.outage.activity = "watching " + o.description()
	return o
}

func (o *objectWatch) add(obj *trackedObject) {
	o.objects[obj.target.ID.Name] = obj
	o.outage.objects = append(o.outage.objects, obj)
}

// description names the objects for people.
func (o *objectWatch) description() string {
	resource := o.mapping.Resource.GroupResource().String()
	if o.namespace == "" {
		return resource
	}
	return resource + " in namespace " + o.namespace
}

func (o *objectWatch) start() {
	o.query = watch.Query{Labels: commonLabels(o.outage.objects), From: startVersion(o.outage.objects)}
	o.watchNames(slices.Sorted(maps.Keys(o.objects)), o.query)
}

func (o *objectWatch) watchNames(names []string, query watch.Query) {
	client := o.watches.cluster.ResourceClient(o.mapping, o.namespace)
	source := watch.SourceOf(client)
	source.ConfirmAbsent = func(ctx context.Context, answer error) error {
		return o.watches.cluster.ConfirmAbsent(ctx, o.mapping, answer)
	}
	if !allAwaitDeletion(o.outage.objects) {
		source.UnservedFor = watch.UnservedConfirmedAfter
	}
	objects := watch.Objects{Source: source, Client: client, Description: o.description(), Names: names, Query: query,
		ReadLimit: o.watches.readLimit}
	tasks := &o.watches.tasks
	tasks.group.Go(func() {
		watch.WatchWithFallback(o.ctx, objects, func(e watch.Event) {
			tasks.send(func() { o.handle(e) })
		})
	})
}

// allAwaitDeletion reports whether all objects are to be deleted.
func allAwaitDeletion(objects []*trackedObject) bool {
	return !slices.ContainsFunc(objects, func(obj *trackedObject) bool { return obj.target.Until != UntilGone })
}

// startVersion returns the oldest resource version among the baselines; empty if an object
// has none.
func startVersion(objects []*trackedObject) string {
	versions := make([]string, len(objects))
	for i, obj := range objects {
		if obj.target.Baseline != nil {
			versions[i] = obj.target.Baseline.GetResourceVersion()
		}
	}
	return kube.OldestVersion(versions)
}

// commonLabels finds a selector that all objects match. The labels are read from
// the objects, since charts may write or omit them as they like.
func commonLabels(objects []*trackedObject) string {
	common := labels.Set{}
	for _, key := range []string{kube.ManagedByLabel, "app.kubernetes.io/instance"} {
		label := func(obj *trackedObject) string {
			if obj.target.Baseline == nil {
				return ""
			}
			return obj.target.Baseline.GetLabels()[key]
		}
		value := label(objects[0])
		differs := func(obj *trackedObject) bool { return label(obj) != value }
		if value != "" && !slices.ContainsFunc(objects, differs) {
			common[key] = value
		}
	}
	return labels.SelectorFromSet(common).String()
}

// dispatch passes an event of all namespaces to the watch of its namespace. Events without
// an object go to all watches.
func dispatch(group []*objectWatch, e watch.Event) {
	live, isAboutOne := e.Object.(*unstructured.Unstructured)
	for _, o := range group {
		if !isAboutOne || live.GetNamespace() == o.namespace {
			o.handle(e)
		}
	}
}

func (o *objectWatch) handle(e watch.Event) {
	if o.ctx.Err() != nil {
		return
	}
	switch e.Kind {
	case watch.Changed:
		o.watches.health.recordAnswer()
		o.changed(e.Object.(*unstructured.Unstructured))
	case watch.Deleted:
		live := e.Object.(*unstructured.Unstructured)
		o.handleLost(o.objects[live.GetName()], live, e.Name != "")
	case watch.Listed:
		for name, obj := range o.objects {
			isListed := obj.observed.object != nil && e.UIDs[obj.observed.object.GetUID()]
			if !isListed && (e.Name == "" || e.Name == name) {
				o.handleLost(obj, nil, e.Name != "")
			}
		}
	case watch.Unreachable:
		o.unanswered++
		o.watches.health.begin(&o.outage, o.watches.opts.Now(), e.Err)
	case watch.Reachable:
		if o.unanswered--; o.unanswered == 0 {
			o.watches.health.end(&o.outage)
		}
	case watch.FellBack:
		o.watches.warn(e.Text)
	case watch.Denied:
		obj := o.objects[e.Name]
		obj.observed.unverifiable, obj.schedule.isDue = "not verified: "+e.Text, true
		o.watches.warn(e.Text)
	case watch.Unauthorized:
		o.watches.fatal = &unauthorizedError{e.Err}
	}
}

func (o *objectWatch) changed(live *unstructured.Unstructured) {
	obj := o.objects[live.GetName()]
	if obj == nil || obj.status.State.IsFinal() {
		return
	}
	obj.update(live, o.watches.opts.Now())
	o.watches.events.addOwner(live.GetUID(), obj, "")
	o.watches.logs.followBarePod(obj)
}

// handleLost handles an object that a watch or a list doesn't have any more; last is its last state, if
// known. One by labels also lacks objects that only lost their labels: these are watched by name
// from then on.
func (o *objectWatch) handleLost(obj *trackedObject, last *unstructured.Unstructured, byName bool) {
	switch {
	case obj == nil || obj.status.State.IsFinal():
	case byName || o.query.Labels == "" || obj.target.Until == UntilGone || last != nil && last.GetDeletionTimestamp() != nil:
		obj.markGone(last)
	case !o.watchedByName[obj.target.ID.Name]:
		o.watchedByName[obj.target.ID.Name] = true
		o.watchNames([]string{obj.target.ID.Name}, watch.Query{})
	}
}
