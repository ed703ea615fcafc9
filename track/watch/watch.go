// Package watch keeps watches of the Kubernetes API open.
//
// It reopens a watch after timeouts, restarts of the API server and expired resource
// versions. Where a watch isn't permitted it falls back to watching single objects, then
// polling, then dry runs.
package watch

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"deployer/internal/kube"
)

// EventKind says what an Event is about.
type EventKind int

// The kinds of events.
const (
	Changed      EventKind = iota // Object was added or changed, or existed when the watch began
	Deleted                       // Object was deleted; it is as last seen
	Listed                        // UIDs are all objects that match: others are gone
	Unreachable                   // Err: the API server is unreachable or in trouble
	Reachable                     // it answers again
	Denied                        // Text: not permitted, and no fallback is left
	FellBack                      // Text: what is done instead, because the watch is refused
	Unauthorized                  // Err: our credentials are not accepted
)

// An Event is one thing that a watch reports.
type Event struct {
	Kind   EventKind
	Object any    // a runtime.Object, or what Source.Transform makes of it; nil when the event is about none
	Name   string // of the one object that is watched by name; empty for watches of many
	UIDs   map[types.UID]bool
	Err    error
	Text   string
}

// A Handler takes an event.
type Handler func(Event)

// Source reads objects of one resource in one namespace.
type Source struct {
	List  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	Watch func(context.Context, metav1.ListOptions) (watch.Interface, error) // nil: the objects are listed from time to time
	// PollEvery is the pause after the first list if there is no Watch. It grows with each list, up to lastPoll.
	PollEvery time.Duration
	// ConfirmAbsent, if set, returns nil if an answer of NotFound means that the objects are gone, for
	// example with their kind; otherwise why that is unknown.
	ConfirmAbsent func(context.Context, error) error
	// UnservedFor is how long the API server must not serve the kind before its objects are gone with it.
	UnservedFor time.Duration
	// Transform makes of each object what events carry, so that little has to be kept.
	Transform func(runtime.Object) any
}

// SourceOf returns the source of a typed or dynamic client of client-go, which keeps the objects.
func SourceOf[L runtime.Object](client interface {
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}) Source {
	return Source{
		List: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, opts)
		},
		Watch:     client.Watch,
		Transform: func(object runtime.Object) any { return object },
	}
}

// Query says which objects of a source, and from when on.
type Query struct {
	Labels, Fields string
	// From is the resource version after which changes are wanted; empty means that existing
	// objects are reported first.
	From string
	// Limit ends the first list early; 0 is no limit. The watch starts at the
	// list's version all the same.
	Limit int64
}

const (
	// refusalConfirmedAfter is how long an API server must refuse a watch that it has permitted
	// before; firstRefusalConfirmedAfter is how long it must refuse one that it hasn't. An API
	// server that has just started answers before it has read its roles, tokens and custom
	// resources, and one of several may learn of new roles later.
	refusalConfirmedAfter      = 20 * time.Second
	firstRefusalConfirmedAfter = time.Second

	// UnservedConfirmedAfter is the UnservedFor of objects that are expected to stay: one of several API servers
	// may serve a new kind later than the one that has stored its first object.
	UnservedConfirmedAfter = refusalConfirmedAfter
)

// firstBackOff waits up to 200 ms at first and 5 s at last, but at least half of that: many clients
// don't return at once.
var firstBackOff = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 1, Steps: math.MaxInt, Cap: 2500 * time.Millisecond}

var (
	errWatchEnded = errors.New("no answer")
	errUnserved   = errors.New("the API server doesn't serve the kind")
)

// watcher is one watch that is kept open.
type watcher struct {
	source Source
	query  Query
	reachability
	resourceVersion string // the last that was seen; empty before the first
	wasOpen         bool
	mustList        bool               // the server doesn't support streaming lists
	backOff         wait.Backoff       // before the next request
	initial         map[types.UID]bool // objects of the streaming list so far; nil after its end
	unauthorized    int                // answers of 401 in a row
	refusedSince    time.Time          // since when the server refuses what it granted before
}

// Watch watches until ctx ends, or returns why the API server refuses.
func Watch(ctx context.Context, source Source, query Query, handle Handler) error {
	w := &watcher{source: source, query: query, reachability: reachability{handle: handle}, resourceVersion: query.From, backOff: firstBackOff}
	for ctx.Err() == nil {
		err := w.listAndWatch(ctx)
		if err == nil || ctx.Err() != nil {
			continue
		}
		switch {
		case w.mayBeTemporary(err):
			if w.wasOpen {
				w.reportUnreachable(err)
			}
		case apierrors.IsNotFound(err) && source.ConfirmAbsent != nil:
			uncertain := source.ConfirmAbsent(ctx, err)
			if uncertain == nil && time.Since(w.refusedSince) < source.UnservedFor {
				uncertain = errUnserved
			}
			if uncertain != nil {
				w.reportUnreachable(uncertain)
				break
			}
			w.reportReachable()
			handle(Event{Kind: Listed})
			w.resourceVersion = "" // the kind may come back
		case isRefusal(err):
			w.reportReachable()
			return err
		case apierrors.IsUnauthorized(err):
			if w.unauthorized++; w.unauthorized > 2 {
				handle(Event{Kind: Unauthorized, Err: err})
				return err
			}
		case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
			w.resourceVersion = ""
		default:
			w.reportUnreachable(err)
		}
		_ = kube.Sleep(ctx, w.backOff.Step()) // a server that forgets versions at once must not be asked in a loop either
	}
	return nil
}

// isRefusal reports whether a retry gets the same answer.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsNotFound(err) ||
		apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) || apierrors.IsNotAcceptable(err)
}

// mayBeTemporary reports whether a refusal may come from an API server that isn't fully
// started.
func (w *watcher) mayBeTemporary(err error) bool {
	if !isRefusal(err) && !(w.wasOpen && apierrors.IsUnauthorized(err)) {
		return false
	}
	w.refusedSince = cmp.Or(w.refusedSince, time.Now())
	if w.wasOpen {
		return time.Since(w.refusedSince) < refusalConfirmedAfter
	}
	return time.Since(w.refusedSince) < firstRefusalConfirmedAfter
}

// A reachability reports whether the API server is reachable, each time that this changes.
type reachability struct {
	handle      Handler
	unreachable bool
}

func (r *reachability) reportUnreachable(err error) {
	if !r.unreachable {
		r.unreachable = true
		r.handle(Event{Kind: Unreachable, Err: err})
	}
}

func (r *reachability) reportReachable() {
	if r.unreachable {
		r.unreachable = false
		r.handle(Event{Kind: Reachable})
	}
}

// listAndWatch lists if it must and watches until the watch ends. A nil error means
// that the watch may be opened again at once.
func (w *watcher) listAndWatch(ctx context.Context) error {
	if w.source.Watch == nil {
		return w.poll(ctx)
	}
	streamsList := w.resourceVersion == "" && w.query.Limit == 0 && !w.mustList
	if w.resourceVersion == "" && !streamsList {
		if err := w.list(ctx); err != nil {
			return err
		}
	}
	opened := time.Now()
	events, err := w.source.Watch(ctx, w.watchOptions(streamsList))
	if streamsList && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)) {
		w.mustList = true // an older server, or one where this is disabled
		return nil
	}
	if err != nil {
		return err
	}
	defer events.Stop()
	if w.initial = nil; streamsList {
		w.initial = map[types.UID]bool{}
	}
	// client-go answers timeouts of the network with a watch that has ended.
	// k8s.io/client-go/rest/request.go
	select {
	case event, open := <-events.ResultChan():
		if !open {
			return errWatchEnded
		}
		if err := w.handleEvent(event); err != nil {
			return err
		}
	default:
	}
	w.answered()
	defer context.AfterFunc(ctx, events.Stop)()
	for event := range events.ResultChan() {
		if err := w.handleEvent(event); err != nil {
			return err
		}
	}
	if ctx.Err() == nil && time.Since(opened) < time.Second {
		_ = kube.Sleep(ctx, w.backOff.Step()) // a server that closes each watch at once must not be asked in a loop
	}
	return nil
}

// answered begins anew to count what the server refuses.
func (w *watcher) answered() {
	w.backOff, w.unauthorized, w.refusedSince, w.wasOpen = firstBackOff, 0, time.Time{}, true
	w.reportReachable()
}

// poll lists, and waits until it is time for the next list.
func (w *watcher) poll(ctx context.Context) error {
	if err := w.list(ctx); err != nil {
		return err
	}
	w.answered()
	err := kube.Sleep(ctx, w.source.PollEvery)
	w.source.PollEvery = min(w.source.PollEvery*3/2, lastPoll)
	return err
}

// watchOptions are those of one request. With streamsList it first lists the existing objects.
// https://kubernetes.io/docs/reference/using-api/api-concepts/#streaming-lists
func (w *watcher) watchOptions(streamsList bool) metav1.ListOptions {
	// The API server ends a watch after this time at the latest, and reflectors
	// of client-go choose the same span.
	seconds := int64(300 + rand.N(300))
	opts := metav1.ListOptions{LabelSelector: w.query.Labels, FieldSelector: w.query.Fields, AllowWatchBookmarks: true,
		ResourceVersion: w.resourceVersion, TimeoutSeconds: &seconds}
	if streamsList {
		opts.SendInitialEvents, opts.ResourceVersionMatch = &streamsList, metav1.ResourceVersionMatchNotOlderThan
	}
	return opts
}

func (w *watcher) list(ctx context.Context) error {
	found, err := w.source.List(ctx, metav1.ListOptions{
		LabelSelector: w.query.Labels, FieldSelector: w.query.Fields, Limit: w.query.Limit,
	})
	if err != nil {
		return err
	}
	uids := map[types.UID]bool{}
	err = meta.EachListItem(found, func(item runtime.Object) error {
		if m, err := meta.Accessor(item); err == nil {
			uids[m.GetUID()] = true
		}
		w.handle(Event{Kind: Changed, Object: w.source.Transform(item)})
		return nil
	})
	if err != nil {
		return err
	}
	l, err := meta.ListAccessor(found)
	if err != nil {
		return err
	}
	w.resourceVersion = l.GetResourceVersion()
	if w.query.Limit == 0 {
		w.handle(Event{Kind: Listed, UIDs: uids})
	}
	return nil
}

func (w *watcher) handleEvent(event watch.Event) error {
	if event.Type == watch.Error {
		err := apierrors.FromObject(event.Object)
		if apierrors.IsGone(err) || apierrors.IsResourceExpired(err) || apierrors.IsTimeout(err) || apierrors.IsInternalError(err) {
			return err
		}
		return nil // any other status of the server: the watch goes on
	}
	m, err := meta.Accessor(event.Object)
	if err != nil {
		return nil
	}
	if w.initial == nil {
		w.resourceVersion = m.GetResourceVersion()
	}
	switch event.Type {
	case watch.Added, watch.Modified:
		if w.initial != nil {
			w.initial[m.GetUID()] = true
		}
		w.handle(Event{Kind: Changed, Object: w.source.Transform(event.Object)})
	case watch.Deleted:
		w.handle(Event{Kind: Deleted, Object: w.source.Transform(event.Object)})
	case watch.Bookmark:
		if w.initial != nil && m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			w.handle(Event{Kind: Listed, UIDs: w.initial})
			w.resourceVersion, w.initial = m.GetResourceVersion(), nil
		}
	}
	return nil
}
