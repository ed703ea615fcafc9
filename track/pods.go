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
	"k8s.io/apimachinery/pkg/watch"

	"deployer/track/pods"
	"deployer/track/stream"
)

const (
	maxValues = 150 // of a label in one watch, for the length of its URL
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
	owners map[string]*subject // by ownerKey
	wanted map[podQuery][]string
	open   []*podWatch
	next   time.Time // when the wanted ones are opened
	gather time.Duration
}

// podQuery is what one watch of pods can select by: a label with many values,
// or a selector of its own.
type podQuery struct{ namespace, label, selector string }

type podWatch struct {
	query    podQuery
	subjects []*subject
	stop     context.CancelFunc
	lost     bool
}

// ownerKey names the controller of pods. ReplicaSets go by name: that follows
// from the Deployment's status, while their uid would cost a request.
func ownerKey(namespace string, uid types.UID, replicaSet string) string {
	if replicaSet != "" {
		return namespace + "/" + replicaSet
	}
	return string(uid)
}

// lookAtPods starts to look at the pods of a workload, once its revision is known,
// and again when there is another one.
func (s *session) lookAtPods(sub *subject) {
	query, value, owner := podsOf(sub)
	if s.wide && query.label != "" && sub.gk.Kind != "DaemonSet" {
		query.namespace = "" // others' pods don't have these values, save the generations of DaemonSets
	}
	if owner == "" || value == sub.revision && s.pods.owners[owner] == sub {
		return
	}
	if s.pods.owners == nil {
		s.pods.owners, s.pods.wanted = map[string]*subject{}, map[podQuery][]string{}
	}
	if sub.revision != "" && sub.revision != value {
		clear(sub.pods)
	}
	sub.revision = value
	s.pods.owners[owner] = sub
	s.pods.wanted[query] = append(s.pods.wanted[query], value)
	s.dirty[sub] = true
}

// openPods opens watches for the pods that are wanted and not yet watched, and
// ends those whose workloads are done.
func (s *session) openPods(now time.Time) {
	s.closePods(func(w *podWatch) bool { return w.done() })
	if len(s.pods.wanted) == 0 || now.Before(s.pods.next) {
		return
	}
	s.pods.gather = min(max(2*s.pods.gather, firstGather), lastGather)
	s.pods.next = now.Add(s.pods.gather)
	for q, values := range s.pods.wanted {
		values = append(values, s.mergePods(q)...)
		slices.Sort(values)
		values = slices.Compact(values)
		for len(values) > 0 {
			n := min(len(values), maxValues)
			s.openWatch(q, values[:n])
			values = values[n:]
		}
	}
	clear(s.pods.wanted)
}

// mergePods ends the watches of a label when they have become many, and gives
// what has to be watched in their place.
func (s *session) mergePods(q podQuery) []string {
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
	s.closePods(func(w *podWatch) bool {
		if w.query != q {
			return false
		}
		for _, sub := range w.subjects {
			if !sub.status.State.Done() {
				values = append(values, sub.revision)
			}
		}
		return true
	})
	return values
}

// closePods ends the watches that are of no use any more.
func (s *session) closePods(useless func(*podWatch) bool) {
	open := s.pods.open[:0]
	for _, w := range s.pods.open {
		if !useless(w) {
			open = append(open, w)
			continue
		}
		w.stop()
		w.stop = nil
		s.podsReach(w, nil)
	}
	s.pods.open = open
}

func (w *podWatch) done() bool {
	for _, sub := range w.subjects {
		if !sub.status.State.Done() {
			return false
		}
	}
	return true
}

func (s *session) openWatch(q podQuery, values []string) {
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
	source := stream.Source{
		List:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return client.List(ctx, o) },
		Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return client.Watch(ctx, o) },
	}
	s.group.Go(func() {
		err := stream.Run(ctx, source, stream.Query{Labels: selector}, func(n stream.Note) bool {
			if p, ok := n.Object.(*corev1.Pod); ok {
				trimmed := pods.Trim(p) // here, so that the session keeps little and does little
				n.Object = nil
				return s.send(func() { s.takePod(w, n, trimmed) })
			}
			return s.send(func() { s.takePod(w, n, pods.Pod{}) })
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
		s.warn("pod details unavailable: " + whyNoWatch(err, "pods", w.query.namespace))
		return
	}
	if !apierrors.IsForbidden(err) {
		s.warn("watching pods in each namespace: " + err.Error())
	}
	s.wide = false
	for owner, sub := range s.pods.owners {
		if slices.Contains(w.subjects, sub) {
			delete(s.pods.owners, owner)
			sub.moved = true
		}
	}
	s.closePods(func(other *podWatch) bool { return other == w })
}

// whyNoWatch says why objects of a namespace aren't watched.
func whyNoWatch(err error, what, namespace string) string {
	if apierrors.IsForbidden(err) {
		return "missing permission to list and watch " + what + " in namespace " + namespace
	}
	return err.Error()
}

func (s *session) takePod(w *podWatch, n stream.Note, p pods.Pod) {
	if w.stop == nil {
		return // another watch has taken its place
	}
	switch n.Kind {
	case stream.Seen, stream.Gone:
		s.pulse.heard = s.opts.Now()
		sub := s.pods.owners[ownerKey("", p.Owner, "")]
		if sub == nil {
			sub = s.pods.owners[ownerKey(p.Namespace, "", p.OwnerName)]
		}
		if sub == nil || sub.status.State.Done() && !s.logs.live(sub) {
			return
		}
		if n.Kind == stream.Gone {
			sub.dropPod(p.UID)
		} else {
			sub.seePod(p)
			s.events.know(p.UID, sub, p.UID)
			s.logs.see(sub, p)
		}
		s.dirty[sub] = true
	case stream.Listed:
		s.podsListed(w, n.UIDs)
	case stream.Lost:
		s.podsReach(w, n.Err)
	case stream.Back:
		s.podsReach(w, nil)
	}
}

// podsReach stops the clocks of workloads whose pods can't be seen, and lets
// them go on when err is nil.
func (s *session) podsReach(w *podWatch, err error) {
	if w.lost == (err != nil) {
		return
	}
	w.lost = err != nil
	now := s.opts.Now()
	for _, sub := range w.subjects {
		if w.lost {
			sub.blind(now)
		} else {
			sub.sighted(now)
		}
		s.dirty[sub] = true
	}
	s.reach("watching pods in namespace "+w.query.namespace, w.lost, err)
}

// podsListed drops pods that were deleted while nothing could be seen.
func (s *session) podsListed(w *podWatch, there map[types.UID]bool) {
	for _, sub := range w.subjects {
		for uid := range sub.pods {
			if !there[uid] {
				sub.dropPod(uid)
				s.dirty[sub] = true
			}
		}
	}
}
