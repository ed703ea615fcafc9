package track

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"deployer/internal/kube"
	"deployer/track/pods"
	"deployer/track/watch"
)

const (
	maxLabelValues = 150 // of a label in one watch, for the length of its URL
	// maxPodWatches is how many watches of a namespace's pods may be open before they are
	// merged: each is a stream of the connection.
	maxPodWatches = 6
	// Revisions become known one by one. They are gathered for longer and longer before the
	// next watch is opened, so that hundreds of workloads need only a few watches.
	firstGather = 500 * time.Millisecond
	lastGather  = 16 * time.Second
)

// podWatches are the watches of new pods, and the workloads that own the pods.
type podWatches struct {
	*session
	events    *eventWatches
	logs      *logFollower
	owners    map[string]*trackedObject // by ownerKey
	requested map[podQuery][]string     // values of the query's label that aren't watched yet
	open      []*podWatch
	nextOpen  time.Time // when the requested ones are opened
	gatherFor time.Duration

	revisionsListedAt map[string]time.Time // by namespace
}

func newPodWatches(s *session, events *eventWatches, logs *logFollower) podWatches {
	return podWatches{session: s, events: events, logs: logs, owners: map[string]*trackedObject{}, requested: map[podQuery][]string{}, revisionsListedAt: map[string]time.Time{}}
}

type podWatch struct {
	query  podQuery
	stop   context.CancelFunc // nil when the watch is closed
	outage outage             // of the workloads whose pods are watched
}

// ownerOf returns the workload whose current revision a pod is of; nil when no tracked object's is.
func (p *podWatches) ownerOf(pod pods.Pod) *trackedObject {
	obj := cmp.Or(p.owners[ownerKey(pod.Owner.UID, pod.Owner.Revision)], p.owners[replicaSetKey(pod.Namespace, pod.Owner.Name)])
	if obj == nil || obj.podsAreOutdated(obj.revisionPods()) {
		return nil
	}
	return obj
}

// request asks for a watch of a workload's pods once its revision is known, and again for each
// later revision.
func (p *podWatches) request(obj *trackedObject) {
	of := obj.revisionPods()
	if p.allNamespaces && of.query.label != "" && obj.gk != kube.DaemonSetKind {
		of.query.namespace = "" // other workloads' pods don't have these label values, except generations of DaemonSets
	}
	if obj.podsAreOutdated(of) {
		p.forget(obj)
	}
	if of.owner == "" || p.owners[of.owner] == obj {
		return
	}
	obj.newPods.revision, obj.newPods.query, obj.newPods.owner = of.value, of.query, of.owner
	p.owners[of.owner] = obj
	p.requested[of.query] = append(p.requested[of.query], of.value)
	obj.schedule.isDue = true
}

// forget drops the pods of a workload's earlier revision. What their watch, or one that others
// need, still reports about them doesn't count.
func (p *podWatches) forget(obj *trackedObject) {
	delete(p.owners, obj.newPods.owner)
	obj.newPods.owner = ""
	clear(obj.newPods.byUID)
	for _, w := range p.open {
		p.health.remove(&w.outage, obj)
	}
}

// update opens watches for the pods that were requested and are not watched yet, and closes
// those whose workloads are done.
func (p *podWatches) update(now time.Time) {
	p.close(func(w *podWatch) bool { return !w.outage.isNeeded() })
	if len(p.requested) == 0 || now.Before(p.nextOpen) {
		return
	}
	p.gatherFor = min(max(2*p.gatherFor, firstGather), lastGather)
	p.nextOpen = now.Add(p.gatherFor)
	for query, values := range p.requested {
		values = append(values, p.merge(query)...)
		slices.Sort(values)
		for some := range slices.Chunk(slices.Compact(values), maxLabelValues) {
			p.start(query, some)
		}
	}
	clear(p.requested)
}

// merge closes the watches of a label when they have become many, and returns the values
// that have to be watched in their place.
func (p *podWatches) merge(query podQuery) []string {
	n := 0
	for _, w := range p.open {
		if w.query == query {
			n++
		}
	}
	if query.label == "" || n < maxPodWatches {
		return nil
	}
	var values []string
	p.close(func(w *podWatch) bool {
		if w.query != query {
			return false
		}
		for _, obj := range w.outage.objects {
			if !obj.status.State.IsFinal() {
				values = append(values, obj.newPods.revision)
			}
		}
		return true
	})
	return values
}

// close closes the watches for which isUseless is true.
func (p *podWatches) close(isUseless func(*podWatch) bool) {
	p.open = slices.DeleteFunc(p.open, func(w *podWatch) bool {
		if !isUseless(w) {
			return false
		}
		w.stop()
		w.stop = nil
		p.health.end(&w.outage)
		return true
	})
}

func (p *podWatches) start(query podQuery, values []string) {
	w := &podWatch{query: query, outage: outage{activity: "watching pods in namespace " + query.namespace}}
	for _, obj := range p.owners {
		if obj.newPods.query == query && slices.Contains(values, obj.newPods.revision) {
			w.outage.objects = append(w.outage.objects, obj)
		}
	}
	var ctx context.Context
	ctx, w.stop = context.WithCancel(p.tasks.ctx)
	p.open = append(p.open, w)
	source := watch.SourceOf(p.typed.CoreV1().Pods(query.namespace))
	source.Transform = trimPod
	p.startWatch(ctx, watchRequest{
		resource: "pods", namespace: query.namespace, source: source, query: watch.Query{Labels: query.labelSelector(values)},
		handle: func(e watch.Event) { p.handle(w, e) }, watchEachNamespace: p.watchEachNamespace, unavailable: "pod details",
	})
}

// trimPod keeps of a pod what is needed, before the session has to hold it.
func trimPod(object runtime.Object) any { return pods.Trim(object.(*corev1.Pod)) }

// watchEachNamespace makes workloads be watched by namespace whose pods are watched in all of them, or are to be.
func (p *podWatches) watchEachNamespace() {
	p.allNamespaces = false
	for owner, obj := range p.owners {
		if obj.newPods.query.namespace == "" {
			delete(p.owners, owner)
			obj.newPods.isOutdated = true
		}
	}
	maps.DeleteFunc(p.requested, func(query podQuery, _ []string) bool { return query.namespace == "" })
	p.close(func(w *podWatch) bool { return w.query.namespace == "" })
}

func (p *podWatches) handle(w *podWatch, e watch.Event) {
	if w.stop == nil {
		return // another watch has taken its place
	}
	switch e.Kind {
	case watch.Changed, watch.Deleted:
		p.health.recordAnswer()
		p.handlePod(e.Object.(pods.Pod), e.Kind == watch.Deleted)
	case watch.Listed:
		p.handleListed(w, e.UIDs)
	case watch.Unreachable:
		p.health.begin(&w.outage, p.opts.Now(), e.Err)
	case watch.Reachable:
		p.health.end(&w.outage)
	}
}

func (p *podWatches) handlePod(pod pods.Pod, deleted bool) {
	obj := p.ownerOf(pod)
	if obj == nil || obj.status.State.IsFinal() && !obj.showsLogs() {
		return
	}
	if deleted {
		obj.deletePod(pod.UID)
		return
	}
	obj.updatePod(pod)
	p.events.addOwner(pod.UID, obj, pod.UID)
	p.logs.followPod(obj, pod)
}

// handleListed drops pods that were deleted while the watch was interrupted.
func (p *podWatches) handleListed(w *podWatch, listed map[types.UID]bool) {
	for _, obj := range w.outage.objects {
		for uid := range obj.newPods.byUID {
			if !listed[uid] {
				obj.deletePod(uid)
			}
		}
	}
}
