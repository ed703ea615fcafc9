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
	"deployer/track/stream"
)

// fewNames is how many objects of a kind are watched one by one.
const fewNames = 3

// A feed watches the targets of one resource in one namespace, until all of
// them are done.
type feed struct {
	s         *session
	ctx       ctx
	stop      context.CancelFunc
	mapping   kube.Mapping
	namespace string
	subjects  map[string]*subject // by name
	query     stream.Query
	named     map[string]bool // watched by name although the feed watches by labels
	lost      int             // streams of the feed that have no answer
}

type feedKey struct {
	resource  schema.GroupVersionResource
	namespace string
}

// open starts a feed for each resource and namespace with something to wait for.
func (s *session) open(ctx context.Context) error {
	feeds := map[feedKey]*feed{}
	for _, sub := range s.subjects {
		if sub.status.State.Done() {
			continue
		}
		mapping, err := s.mapping(ctx, sub)
		var no *kube.NoKindError
		if errors.As(err, &no) && sub.Until == UntilGone {
			sub.gone = true // objects of a kind that isn't served don't exist
			s.judge(sub, s.opts.Now())
			continue
		}
		if errors.As(err, &no) {
			sub.denied = "not verified: " + err.Error()
			s.judge(sub, s.opts.Now())
			continue
		}
		if err != nil {
			return err
		}
		sub.hasStatus = &mapping.Status
		if s.judge(sub, s.opts.Now()); sub.status.State.Done() {
			continue
		}
		key := feedKey{mapping.Resource, sub.ID.Namespace}
		if feeds[key] == nil {
			f := &feed{s: s, mapping: mapping, namespace: sub.ID.Namespace, subjects: map[string]*subject{}}
			f.ctx, f.stop = context.WithCancel(s.ctx)
			feeds[key], s.feeds = f, append(s.feeds, f)
		}
		feeds[key].subjects[sub.ID.Name] = sub
	}
	return s.startFeeds()
}

// mapping finds where a target is served. A kind that was defined by this
// release may be newer than what is known about the cluster.
func (s *session) mapping(ctx context.Context, sub *subject) (kube.Mapping, error) {
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

func (f *feed) start() error {
	all := slices.Collect(maps.Values(f.subjects))
	f.query = stream.Query{Labels: common(all), From: from(all)}
	return f.follow(slices.Sorted(maps.Keys(f.subjects)), f.query)
}

func (f *feed) follow(names []string, query stream.Query) error {
	client, err := f.s.tracker.cluster.ResourceAt(f.mapping, f.namespace)
	if err != nil {
		return err
	}
	objects := stream.Objects{Client: client, What: f.what(), Names: names, Query: query, Pace: &f.s.pace,
		Going: allGo(slices.Collect(maps.Values(f.subjects)))}
	f.s.group.Go(func() {
		stream.Follow(f.ctx, objects, fewNames, func(n stream.Note) bool {
			return f.s.send(func() { f.take(n) })
		})
	})
	return nil
}

// allGo reports whether the objects are to go, all of them.
func allGo(subjects []*subject) bool {
	return !slices.ContainsFunc(subjects, func(s *subject) bool { return s.Until != UntilGone })
}

// what names the objects of the feed for people.
func (f *feed) what() string {
	what := f.mapping.Resource.GroupResource().String()
	if f.namespace != "" {
		what += " in namespace " + f.namespace
	}
	return what
}

// from is the version after which all that concerns the targets has happened:
// the first answer to our own writes. Without one for each the watch begins
// with a list.
func from(subjects []*subject) string {
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

// common finds a selector that all targets match. The labels are read from
// the objects, since charts may write or omit them as they like.
func common(subjects []*subject) string {
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

// waits reports whether any of the feed's targets isn't done.
func (f *feed) waits() bool {
	for _, sub := range f.subjects {
		if !sub.status.State.Done() {
			return true
		}
	}
	return false
}

// end stops the streams of a feed. What they couldn't see is of no interest now.
func (f *feed) end() {
	f.stop()
	for ; f.lost > 0; f.lost-- {
		f.s.reach("", false, nil)
	}
}

// take handles what a stream of the feed tells.
func (f *feed) take(n stream.Note) {
	if f.ctx.Err() != nil {
		return
	}
	switch n.Kind {
	case stream.Seen:
		f.s.pulse.heard = f.s.opts.Now()
		if obj, ok := n.Object.(*unstructured.Unstructured); ok {
			f.seen(obj)
		}
	case stream.Gone:
		if obj, ok := n.Object.(*unstructured.Unstructured); ok {
			f.deleted(obj, n.Name != "")
		}
	case stream.Missing:
		if sub := f.subjects[n.Name]; sub != nil && !sub.status.State.Done() {
			sub.lose(nil)
			f.s.dirty[sub] = true
		}
	case stream.Listed:
		f.listed(n)
	case stream.Lost, stream.Back:
		f.connection(n)
	case stream.StepDown:
		f.s.warn(steppedDown(n))
	case stream.Denied:
		f.deny(n)
	case stream.Unauthorized:
		f.s.fatal = &unauthorizedError{n.Err}
	}
}

func (f *feed) seen(obj *unstructured.Unstructured) {
	sub := f.subjects[obj.GetName()]
	if sub == nil || sub.status.State.Done() {
		return
	}
	sub.see(obj, f.s.opts.Now())
	f.s.events.know(obj.GetUID(), sub, "")
	f.s.logs.seeBare(sub)
	f.s.dirty[sub] = true
}

// deleted takes the end of an object. A watch by labels says the same of an
// object that only lost its labels, so that one is then watched by name.
func (f *feed) deleted(obj *unstructured.Unstructured, byName bool) {
	sub := f.subjects[obj.GetName()]
	if sub == nil || sub.status.State.Done() {
		return
	}
	if f.query.Labels != "" && !byName && sub.Until != UntilGone && obj.GetDeletionTimestamp() == nil {
		f.followByName(obj.GetName())
		return
	}
	sub.lose(obj)
	f.s.dirty[sub] = true
}

// listed takes that a list had exactly these objects. One by labels lacks also
// an object that only lost its labels, so that one is then watched by name.
func (f *feed) listed(n stream.Note) {
	for name, sub := range f.subjects {
		here := sub.object != nil && n.UIDs[sub.object.GetUID()]
		if n.Name != "" && n.Name != name || sub.status.State.Done() || here {
			continue
		}
		if f.query.Labels != "" && n.Name == "" && sub.Until != UntilGone {
			f.followByName(name)
			continue
		}
		sub.lose(nil)
		f.s.dirty[sub] = true
	}
}

// followByName watches an object by its name, once: each list by labels lacks it.
func (f *feed) followByName(name string) {
	if f.named[name] {
		return
	}
	if f.named == nil {
		f.named = map[string]bool{}
	}
	f.named[name] = true
	if err := f.follow([]string{name}, stream.Query{}); err != nil {
		f.s.fatal = err
	}
}

// deny takes that nothing can be learnt about an object.
func (f *feed) deny(n stream.Note) {
	if sub := f.subjects[n.Name]; sub != nil {
		sub.denied = "not verified: " + n.Text
		f.s.dirty[sub] = true
	}
	f.s.warn(n.Text)
}

// connection counts the streams without answer. While a feed has one, the
// clocks of its objects stand still: silence proves nothing then.
func (f *feed) connection(n stream.Note) {
	now := f.s.opts.Now()
	was := f.lost
	if n.Kind == stream.Lost {
		f.lost++
	} else {
		f.lost--
	}
	for _, sub := range f.subjects {
		switch {
		case was == 0 && f.lost == 1:
			sub.blind(now)
		case was == 1 && f.lost == 0:
			sub.sighted(now)
			f.s.dirty[sub] = true
		}
	}
	f.s.reach("watching "+f.what(), n.Kind == stream.Lost, n.Err)
}

// steppedDown says what is done in another way than at first, and why where that
// isn't a missing permission, which the text names.
func steppedDown(n stream.Note) string {
	if n.Err == nil || apierrors.IsForbidden(n.Err) {
		return n.Text
	}
	return n.Text + ": " + n.Err.Error()
}

// reach notes that what was being done has no answer, or has one again, and tells
// it of the first that is lost and the last that is back.
func (s *session) reach(doing string, lost bool, err error) {
	now := s.opts.Now()
	switch {
	case lost:
		if s.outages++; s.outages == 1 {
			s.outageFrom = now
			s.saw(Report{Kind: APILost, Time: now, Text: doing + ": " + strings.TrimSpace(err.Error())})
		}
		s.lostErr = err
	default:
		if s.outages--; s.outages == 0 {
			s.saw(Report{Kind: APIRegained, Time: now, Lost: now.Sub(s.outageFrom)})
		}
	}
}

// tidy ends the feeds of what is done, and notes since when nothing can be seen
// of anything that is still waited for: then there is no use in waiting.
func (s *session) tidy(now time.Time) {
	lost := 0
	s.feeds = slices.DeleteFunc(s.feeds, func(f *feed) bool {
		if f.waits() {
			lost += min(f.lost, 1)
			return false
		}
		f.end()
		return true
	})
	switch all := s.pulse.lost || lost > 0 && lost == len(s.feeds); {
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
