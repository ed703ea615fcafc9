package track

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"deployer/track/pods"
	"deployer/track/watch"
)

const (
	maxLabelValues = 150 // of a label in one watch, for the length of its URL
	// maxPodWatches is how many watches of a namespace's pods may be open before
	// they are made into fewer: each is a stream of the connection.
	maxPodWatches = 6
	// Revisions become known one by one. Those that come while the first watches
	// are young are gathered for longer and longer, so that hundreds of
	// workloads take a handful of watches.
	firstGather = 500 * time.Millisecond
	lastGather  = 16 * time.Second
)

// podWatches are the watches of new pods, and whose pods they are.
type podWatches struct {
	owners    map[string]*trackedObject // by ownerKey
	wanted    map[podQuery][]string
	open      []*podWatch
	nextOpen  time.Time // when the wanted ones are opened
	gatherFor time.Duration
}

// podQuery is what one watch of pods can select by: a label with many values,
// or a selector of its own.
type podQuery struct{ namespace, label, selector string }

type podWatch struct {
	query       podQuery
	subjects    []*trackedObject
	stop        context.CancelFunc
	unreachable bool
}

// ownerKey names the controller of pods. ReplicaSets go by name: that follows
// from the Deployment's status, while their uid would cost a request.
func ownerKey(namespace string, uid types.UID, replicaSet string) string {
	if replicaSet != "" {
		return namespace + "/" + replicaSet
	}
	return string(uid)
}

// wantPods starts to look at the pods of a workload, once its revision is known,
// and again when there is another one.
func (s *session) wantPods(sub *trackedObject) {
	query, value, owner := newPodsOf(sub)
	if s.allNamespaces && query.label != "" && sub.gk.Kind != "DaemonSet" {
		query.namespace = "" // others' pods don't have these values, save the generations of DaemonSets
	}
	if owner == "" || value == sub.revision && s.pods.owners[owner] == sub {
		return
	}
	if s.pods.owners == nil {
		s.pods.owners, s.pods.wanted = map[string]*trackedObject{}, map[podQuery][]string{}
	}
	if sub.revision != "" && sub.revision != value {
		clear(sub.pods)
	}
	sub.revision = value
	s.pods.owners[owner] = sub
	s.pods.wanted[query] = append(s.pods.wanted[query], value)
	s.dirty[sub] = true
}

// openPodWatches opens watches for the pods that are wanted and not yet watched, and
// ends those whose workloads are done.
func (s *session) openPodWatches(now time.Time) {
	s.closePodWatches(func(w *podWatch) bool { return w.isDone() })
	if len(s.pods.wanted) == 0 || now.Before(s.pods.nextOpen) {
		return
	}
	s.pods.gatherFor = min(max(2*s.pods.gatherFor, firstGather), lastGather)
	s.pods.nextOpen = now.Add(s.pods.gatherFor)
	for q, values := range s.pods.wanted {
		values = append(values, s.mergePodWatches(q)...)
		slices.Sort(values)
		values = slices.Compact(values)
		for len(values) > 0 {
			n := min(len(values), maxLabelValues)
			s.openPodWatch(q, values[:n])
			values = values[n:]
		}
	}
	clear(s.pods.wanted)
}

// mergePodWatches ends the watches of a label when they have become many, and gives
// what has to be watched in their place.
func (s *session) mergePodWatches(q podQuery) []string {
	n := 0
	for _, w := range s.pods.open {
		if w.query == q && w.stop != nil {
			n++
		}
	}
	if q.label == "" || n < maxPodWatches {
		return nil
	}
	var values []string
	s.closePodWatches(func(w *podWatch) bool {
		if w.query != q {
			return false
		}
		for _, sub := range w.subjects {
			if !sub.status.State.IsFinal() {
				values = append(values, sub.revision)
			}
		}
		return true
	})
	return values
}

// closePodWatches ends the watches that are of no use any more.
func (s *session) closePodWatches(useless func(*podWatch) bool) {
	open := s.pods.open[:0]
	for _, w := range s.pods.open {
		if !useless(w) {
			open = append(open, w)
			continue
		}
		w.stop()
		w.stop = nil
		s.setPodsReachable(w, nil)
	}
	s.pods.open = open
}

func (w *podWatch) isDone() bool {
	for _, sub := range w.subjects {
		if !sub.status.State.IsFinal() {
			return false
		}
	}
	return true
}

func (s *session) openPodWatch(q podQuery, values []string) {
	typed, err := s.tracker.cluster.Typed()
	if err != nil {
		return // Wait has used the connection already
	}
	w := &podWatch{query: q}
	want := map[string]bool{}
	for _, v := range values {
		want[v] = true
	}
	for _, sub := range s.pods.owners {
		if (sub.ID.Namespace == q.namespace || q.namespace == "") && want[sub.revision] {
			w.subjects = append(w.subjects, sub)
		}
	}
	selector := q.selector
	if selector == "" {
		selector = q.label + " in (" + strings.Join(values, ",") + ")"
	}
	var ctx context.Context
	ctx, w.stop = context.WithCancel(s.ctx)
	s.pods.open = append(s.pods.open, w)
	client := typed.CoreV1().Pods(q.namespace)
	source := watch.Source{
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return client.List(ctx, o) },
		Watch: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			return client.Watch(ctx, o)
		},
	}
	s.group.Go(func() {
		err := watch.Watch(ctx, source, watch.Query{Labels: selector}, func(n watch.Event) bool {
			if p, ok := n.Object.(*corev1.Pod); ok {
				trimmed := pods.Trim(p) // here, so that the session keeps little and does little
				n.Object = nil
				return s.send(func() { s.handlePod(w, n, trimmed) })
			}
			return s.send(func() { s.handlePod(w, n, pods.Pod{}) })
		})
		if err != nil && ctx.Err() == nil {
			s.send(func() { s.podsDenied(w, err) })
		}
	})
}

// podsDenied goes on without pods, or with those of one namespace at a time when
// it were all at once that may not be watched.
func (s *session) podsDenied(w *podWatch, err error) {
	if apierrors.IsUnauthorized(err) {
		s.fatal = &unauthorizedError{err}
		return
	}
	if w.query.namespace != "" {
		s.warn("pod details unavailable: " + noWatchReason(err, "pods", w.query.namespace))
		return
	}
	if !apierrors.IsForbidden(err) {
		s.warn("watching pods in each namespace: " + err.Error())
	}
	s.allNamespaces = false
	for owner, sub := range s.pods.owners {
		if slices.Contains(w.subjects, sub) {
			delete(s.pods.owners, owner)
			sub.podsOutdated = true
		}
	}
	s.closePodWatches(func(other *podWatch) bool { return other == w })
}

// noWatchReason says why objects of a namespace aren't watched.
func noWatchReason(err error, what, namespace string) string {
	if apierrors.IsForbidden(err) {
		return "missing permission to list and watch " + what + " in namespace " + namespace
	}
	return err.Error()
}

func (s *session) handlePod(w *podWatch, n watch.Event, p pods.Pod) {
	if w.stop == nil {
		return // another watch has taken its place
	}
	switch n.Kind {
	case watch.Changed, watch.Deleted:
		s.health.heardAt = s.opts.Now()
		sub := s.pods.owners[ownerKey("", p.Owner, "")]
		if sub == nil {
			sub = s.pods.owners[ownerKey(p.Namespace, "", p.OwnerName)]
		}
		if sub == nil || sub.status.State.IsFinal() && !s.logs.isLive(sub) {
			return
		}
		if n.Kind == watch.Deleted {
			sub.deletePod(p.UID)
		} else {
			sub.updatePod(p)
			s.events.addOwner(p.UID, sub, p.UID)
			s.logs.followPod(sub, p)
		}
		s.dirty[sub] = true
	case watch.Listed:
		s.podsListed(w, n.UIDs)
	case watch.Unreachable:
		s.setPodsReachable(w, n.Err)
	case watch.Reachable:
		s.setPodsReachable(w, nil)
	}
}

// setPodsReachable stops the clocks of workloads whose pods can't be seen, and lets
// them go on when err is nil.
func (s *session) setPodsReachable(w *podWatch, err error) {
	if w.unreachable == (err != nil) {
		return
	}
	w.unreachable = err != nil
	now := s.opts.Now()
	for _, sub := range w.subjects {
		if w.unreachable {
			sub.pauseTimers(now)
		} else {
			sub.resumeTimers(now)
		}
		s.dirty[sub] = true
	}
	s.setReachable("watching pods in namespace "+w.query.namespace, w.unreachable, err)
}

// podsListed drops pods that were deleted while nothing could be seen.
func (s *session) podsListed(w *podWatch, there map[types.UID]bool) {
	for _, sub := range w.subjects {
		for uid := range sub.pods {
			if !there[uid] {
				sub.deletePod(uid)
				s.dirty[sub] = true
			}
		}
	}
}
