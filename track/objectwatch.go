package track

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"deployer/internal/kube"
	"deployer/track/watch"
)

// namedWatchLimit is how many objects of a kind are watched one by one.
const namedWatchLimit = 3

// A feed watches the targets of one resource in one namespace, until all of
// them are done.
type objectWatch struct {
	s             *session
	ctx           ctx
	stop          context.CancelFunc
	mapping       kube.Mapping
	namespace     string
	objects       map[string]*trackedObject // by name
	query         watch.Query
	watchedByName map[string]bool // watched by name although the feed watches by labels
	unanswered    int             // streams of the feed that have no answer
}

type objectWatchKey struct {
	resource  schema.GroupVersionResource
	namespace string
}

// openWatches starts a feed for each resource and namespace with something to wait for.
func (s *session) openWatches(ctx context.Context) error {
	feeds := map[objectWatchKey]*objectWatch{}
	for _, sub := range s.objects {
		if sub.status.State.IsFinal() {
			continue
		}
		mapping, err := s.mapping(ctx, sub)
		var no *kube.NoKindError
		if errors.As(err, &no) && sub.Until == UntilGone {
			sub.gone = true // objects of a kind that isn't served don't exist
			s.updateStatus(sub, s.opts.Now())
			continue
		}
		if errors.As(err, &no) {
			sub.unverifiable = "not verified: " + err.Error()
			s.updateStatus(sub, s.opts.Now())
			continue
		}
		if err != nil {
			return err
		}
		sub.hasStatus = &mapping.Status
		if s.updateStatus(sub, s.opts.Now()); sub.status.State.IsFinal() {
			continue
		}
		key := objectWatchKey{mapping.Resource, sub.ID.Namespace}
		if feeds[key] == nil {
			f := &objectWatch{s: s, mapping: mapping, namespace: sub.ID.Namespace, objects: map[string]*trackedObject{}}
			f.ctx, f.stop = context.WithCancel(s.ctx)
			feeds[key], s.objectWatches = f, append(s.objectWatches, f)
		}
		feeds[key].objects[sub.ID.Name] = sub
	}
	return s.startObjectWatches()
}

// mapping finds where a target is served. A kind that was defined by this
// release may be newer than what is known about the cluster.
func (s *session) mapping(ctx context.Context, sub *trackedObject) (kube.Mapping, error) {
	gvk := sub.GVK
	if gvk.Empty() {
		gvk = sub.ID.GroupKind().WithVersion("")
	}
	mapping, err := s.tracker.cluster.Mapping(ctx, gvk, true)
	var no *kube.NoKindError
	if errors.As(err, &no) && sub.Until != UntilGone {
		s.tracker.cluster.ForgetKinds()
		mapping, err = s.tracker.cluster.Mapping(ctx, gvk, true)
	}
	return mapping, err
}

func (f *objectWatch) start() error {
	all := slices.Collect(maps.Values(f.objects))
	f.query = watch.Query{Labels: commonLabels(all), From: startVersion(all)}
	return f.follow(slices.Sorted(maps.Keys(f.objects)), f.query)
}

func (f *objectWatch) follow(names []string, query watch.Query) error {
	client, err := f.s.tracker.cluster.ResourceAt(f.mapping, f.namespace)
	if err != nil {
		return err
	}
	objects := watch.Objects{Client: client, Description: f.description(), Names: names, Query: query, Pace: &f.s.pace,
		AwaitDeletion: allAwaitDeletion(slices.Collect(maps.Values(f.objects)))}
	f.s.group.Go(func() {
		watch.Follow(f.ctx, objects, namedWatchLimit, func(n watch.Event) bool {
			return f.s.send(func() { f.handle(n) })
		})
	})
	return nil
}

// allAwaitDeletion reports whether the objects are to go, all of them.
func allAwaitDeletion(subjects []*trackedObject) bool {
	return !slices.ContainsFunc(subjects, func(s *trackedObject) bool { return s.Until != UntilGone })
}

// description names the objects of the feed for people.
func (f *objectWatch) description() string {
	what := f.mapping.Resource.GroupResource().String()
	if f.namespace != "" {
		what += " in namespace " + f.namespace
	}
	return what
}

// startVersion is the version after which all that concerns the targets has happened:
// the first answer to our own writes. Without one for each the watch begins
// with a list.
func startVersion(subjects []*trackedObject) string {
	first := ""
	for _, sub := range subjects {
		if sub.Baseline == nil || sub.Baseline.GetResourceVersion() == "" {
			return ""
		}
		version := sub.Baseline.GetResourceVersion()
		if first == "" {
			first = version
			continue
		}
		order, err := resourceversion.CompareResourceVersion(version, first)
		if err != nil {
			return ""
		}
		if order < 0 {
			first = version
		}
	}
	return first
}

// commonLabels finds a selector that all targets match. The labels are read from
// the objects, since charts may write or omit them as they like.
func commonLabels(subjects []*trackedObject) string {
	var chosen labels.Set
	for _, sub := range subjects {
		has := labels.Set{}
		if sub.Baseline != nil {
			for _, key := range []string{"app.kubernetes.io/managed-by", "app.kubernetes.io/instance"} {
				if v := sub.Baseline.GetLabels()[key]; v != "" {
					has[key] = v
				}
			}
		}
		if chosen == nil {
			chosen = has
		}
		for key, value := range chosen {
			if has[key] != value {
				delete(chosen, key)
			}
		}
	}
	return labels.SelectorFromSet(chosen).String()
}

// isNeeded reports whether any of the feed's targets isn't done.
func (f *objectWatch) isNeeded() bool {
	for _, sub := range f.objects {
		if !sub.status.State.IsFinal() {
			return true
		}
	}
	return false
}

// close stops the streams of a feed. What they couldn't see is of no interest now.
func (f *objectWatch) close() {
	f.stop()
	for ; f.unanswered > 0; f.unanswered-- {
		f.s.setReachable("", false, nil)
	}
}

// handle handles what a stream of the feed tells.
func (f *objectWatch) handle(n watch.Event) {
	if f.ctx.Err() != nil {
		return
	}
	switch n.Kind {
	case watch.Changed:
		f.s.health.heardAt = f.s.opts.Now()
		if obj, ok := n.Object.(*unstructured.Unstructured); ok {
			f.changed(obj)
		}
	case watch.Deleted:
		if obj, ok := n.Object.(*unstructured.Unstructured); ok {
			f.deleted(obj, n.Name != "")
		}
	case watch.NotFound:
		if sub := f.objects[n.Name]; sub != nil && !sub.status.State.IsFinal() {
			sub.markGone(nil)
			f.s.dirty[sub] = true
		}
	case watch.Listed:
		f.listed(n)
	case watch.Unreachable, watch.Reachable:
		f.reachable(n)
	case watch.FellBack:
		f.s.warn(fallbackText(n))
	case watch.Denied:
		f.unverifiable(n)
	case watch.Unauthorized:
		f.s.fatal = &unauthorizedError{n.Err}
	}
}

func (f *objectWatch) changed(obj *unstructured.Unstructured) {
	sub := f.objects[obj.GetName()]
	if sub == nil || sub.status.State.IsFinal() {
		return
	}
	sub.update(obj, f.s.opts.Now())
	f.s.events.addOwner(obj.GetUID(), sub, "")
	f.s.logs.followBarePod(sub)
	f.s.dirty[sub] = true
}

// deleted takes the end of an object. A watch by labels says the same of an
// object that only lost its labels, so that one is then watched by name.
func (f *objectWatch) deleted(obj *unstructured.Unstructured, byName bool) {
	sub := f.objects[obj.GetName()]
	if sub == nil || sub.status.State.IsFinal() {
		return
	}
	if f.query.Labels != "" && !byName && sub.Until != UntilGone && obj.GetDeletionTimestamp() == nil {
		f.followByName(obj.GetName())
		return
	}
	sub.markGone(obj)
	f.s.dirty[sub] = true
}

// listed takes that a list had exactly these objects. One by labels lacks also
// an object that only lost its labels, so that one is then watched by name.
func (f *objectWatch) listed(n watch.Event) {
	for name, sub := range f.objects {
		here := sub.object != nil && n.UIDs[sub.object.GetUID()]
		if n.Name != "" && n.Name != name || sub.status.State.IsFinal() || here {
			continue
		}
		if f.query.Labels != "" && n.Name == "" && sub.Until != UntilGone {
			f.followByName(name)
			continue
		}
		sub.markGone(nil)
		f.s.dirty[sub] = true
	}
}

// followByName watches an object by its name, once: each list by labels lacks it.
func (f *objectWatch) followByName(name string) {
	if f.watchedByName[name] {
		return
	}
	if f.watchedByName == nil {
		f.watchedByName = map[string]bool{}
	}
	f.watchedByName[name] = true
	if err := f.follow([]string{name}, watch.Query{}); err != nil {
		f.s.fatal = err
	}
}

// unverifiable takes that nothing can be learnt about an object.
func (f *objectWatch) unverifiable(n watch.Event) {
	if sub := f.objects[n.Name]; sub != nil {
		sub.unverifiable = "not verified: " + n.Text
		f.s.dirty[sub] = true
	}
	f.s.warn(n.Text)
}

// reachable counts the streams without answer. While a feed has one, the
// clocks of its objects stand still: silence proves nothing then.
func (f *objectWatch) reachable(n watch.Event) {
	now := f.s.opts.Now()
	was := f.unanswered
	if n.Kind == watch.Unreachable {
		f.unanswered++
	} else {
		f.unanswered--
	}
	for _, sub := range f.objects {
		switch {
		case was == 0 && f.unanswered == 1:
			sub.pauseTimers(now)
		case was == 1 && f.unanswered == 0:
			sub.resumeTimers(now)
			f.s.dirty[sub] = true
		}
	}
	f.s.setReachable("watching "+f.description(), n.Kind == watch.Unreachable, n.Err)
}

// fallbackText says what is done in another way than at first, and why where that
// isn't a missing permission, which the text names.
func fallbackText(n watch.Event) string {
	if n.Err == nil || apierrors.IsForbidden(n.Err) {
		return n.Text
	}
	return n.Text + ": " + n.Err.Error()
}

// setReachable notes that what was being done has no answer, or has one again, and tells
// it of the first that is lost and the last that is back.
func (s *session) setReachable(doing string, lost bool, err error) {
	now := s.opts.Now()
	switch {
	case lost:
		if s.outages++; s.outages == 1 {
			s.outageFrom = now
			s.report(Report{Kind: APILost, Time: now, Text: doing + ": " + strings.TrimSpace(err.Error())})
		}
		s.lostErr = err
	default:
		if s.outages--; s.outages == 0 {
			s.report(Report{Kind: APIRegained, Time: now, Lost: now.Sub(s.outageFrom)})
		}
	}
}

// closeWatches ends the feeds of what is done, and notes since when nothing can be seen
// of anything that is still waited for: then there is no use in waiting.
func (s *session) closeWatches(now time.Time) {
	lost := 0
	s.objectWatches = slices.DeleteFunc(s.objectWatches, func(f *objectWatch) bool {
		if f.isNeeded() {
			lost += min(f.unanswered, 1)
			return false
		}
		f.close()
		return true
	})
	switch all := s.health.storageLost || lost > 0 && lost == len(s.objectWatches); {
	case all && s.lostAt.IsZero():
		s.lostAt = now
	case !all:
		s.lostAt = time.Time{}
	}
}

// unauthorizedError ends a wait: nothing can be learnt without credentials.
type unauthorizedError struct{ err error }

func (e *unauthorizedError) Error() string {
	return "the API server doesn't accept our credentials any more: " + e.err.Error()
}

func (e *unauthorizedError) Unwrap() error { return e.err }

func (e *unauthorizedError) Hint() string {
	return "renew the credentials of the kubeconfig; the rollout goes on in the cluster"
}
