// Package stream keeps watches of the Kubernetes API open.
//
// A stream survives whatever ends a watch: timeouts, restarts of the API
// server, expired resource versions. Where a watch is not permitted it steps
// down to what is: one object at a time, then reading, then dry runs.
package stream

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Kind says what a Note tells.
type Kind int

// The kinds of note.
const (
	Seen         Kind = iota // Object was added or changed, or was there when we looked
	Gone                     // Object was deleted; it is as last seen
	Missing                  // Name isn't there, found by reading
	Listed                   // what matches is exactly UIDs: the others are gone
	Opened                   // the watch is open
	Lost                     // Err: the API server is out of reach or in trouble
	Back                     // it answers again
	Denied                   // Text: we may not, and there is no other way
	StepDown                 // Err: we may not, Text says what is done instead
	Unauthorized             // Err: our credentials are not accepted
)

// A Note is one thing a stream tells.
type Note struct {
	Kind   Kind
	Object runtime.Object
	Name   string // of the one object that the stream is about; empty for streams of many
	UIDs   map[types.UID]bool
	Err    error
	Text   string
}

// Tell hands a note over; it returns false when nobody listens any more.
type Tell func(Note) bool

// Source reads objects of one resource in one namespace.
type Source struct {
	List  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	Watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// Query says which objects of a source, and from when on.
type Query struct {
	Labels, Fields string
	// From is the resource version after which changes are wanted; empty means
	// that what is there is listed first.
	From string
	// Limit ends the first list early; 0 is no limit. The watch starts at the
	// list's version all the same.
	Limit int64
}

const (
	firstPause = 200 * time.Millisecond
	lastPause  = 5 * time.Second
	// doubt is how long an API server must refuse what it granted before, and
	// firstDoubt how long it must refuse at all. One that has just started answers
	// before it has read its roles, its tokens and its custom resources, and one
	// of several learns of new roles later than another.
	doubt      = 20 * time.Second
	firstDoubt = time.Second
)

var errEnded = errors.New("no answer")

// watching is one stream on its way.
type watching struct {
	source Source
	query  Query
	tell   Tell
	at     string // resource version reached
	lost   bool
	opened bool
	listed bool // the server doesn't send what is there by a watch: list it
	pause  time.Duration
	begins map[types.UID]bool // what was there when the watch began, until all of it has been told
	denied int                // answers of 401 in a row
	no     time.Time          // since when the server refuses what it granted before
}

// Run watches until ctx ends, or returns the reason why it may not.
func Run(ctx context.Context, source Source, query Query, tell Tell) error {
	w := &watching{source: source, query: query, tell: tell, at: query.From}
	for ctx.Err() == nil {
		err := w.once(ctx)
		if ctx.Err() != nil {
			return nil
		}
		switch {
		case err == nil:
		case w.doubtful(err):
			if w.opened {
				w.trouble(err)
			}
			w.wait(ctx)
		case refused(err):
			w.answered()
			return err
		case apierrors.IsUnauthorized(err):
			if w.denied++; w.denied > 2 {
				tell(Note{Kind: Unauthorized, Err: err})
				return err
			}
			w.wait(ctx)
		case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
			w.at = ""
		default:
			w.trouble(err)
			w.wait(ctx)
		}
	}
	return nil
}

// refused reports whether an answer won't change by asking again.
func refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsNotFound(err) ||
		apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) || apierrors.IsNotAcceptable(err)
}

// doubtful reports whether a refusal may be that of an API server that doesn't
// know better yet.
func (w *watching) doubtful(err error) bool {
	if !refused(err) && !(w.opened && apierrors.IsUnauthorized(err)) {
		return false
	}
	if w.no.IsZero() {
		w.no = time.Now()
	}
	if w.opened {
		return time.Since(w.no) < doubt
	}
	return time.Since(w.no) < firstDoubt
}

func (w *watching) trouble(err error) {
	if !w.lost {
		w.lost = true
		w.tell(Note{Kind: Lost, Err: err})
	}
}

func (w *watching) answered() {
	if w.lost {
		w.lost = false
		w.tell(Note{Kind: Back})
	}
}

func (w *watching) fine() {
	w.pause, w.denied, w.no = 0, 0, time.Time{}
	w.answered()
	if !w.opened {
		w.opened = true
		w.tell(Note{Kind: Opened})
	}
}

// wait pauses longer each time, unevenly so that many clients don't return at
// one moment.
func (w *watching) wait(ctx context.Context) {
	w.pause = min(max(2*w.pause, firstPause), lastPause)
	timer := time.NewTimer(w.pause/2 + rand.N(w.pause/2))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// once lists if it must and watches until the watch ends. A nil error means
// that the watch may be opened again at once.
func (w *watching) once(ctx context.Context) error {
	opts := metav1.ListOptions{LabelSelector: w.query.Labels, FieldSelector: w.query.Fields, AllowWatchBookmarks: true}
	whole := w.at == "" && w.query.Limit == 0 && !w.listed
	switch {
	case whole:
		// One request for what is there and what becomes of it.
		// https://kubernetes.io/docs/reference/using-api/api-concepts/#streaming-lists
		yes := true
		opts.SendInitialEvents, opts.ResourceVersionMatch = &yes, metav1.ResourceVersionMatchNotOlderThan
	case w.at == "":
		if err := w.list(ctx); err != nil {
			return err
		}
	}
	opts.ResourceVersion = w.at
	// The API server ends a watch after this time at the latest, and reflectors
	// of client-go choose the same span.
	seconds := int64(300 + rand.N(300))
	opts.TimeoutSeconds = &seconds
	opened := time.Now()
	events, err := w.source.Watch(ctx, opts)
	if whole && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)) {
		w.listed = true // an older server, or one that was told not to
		return nil
	}
	if err != nil {
		return err
	}
	defer events.Stop()
	if w.begins = nil; whole {
		w.begins = map[types.UID]bool{}
	}
	// client-go answers timeouts of the network with a watch that has ended.
	// k8s.io/client-go/rest/request.go
	select {
	case event, open := <-events.ResultChan():
		if !open {
			return errEnded
		}
		if err := w.take(event); err != nil {
			return err
		}
	default:
	}
	w.fine()
	if err := w.read(ctx, events); err != nil {
		return err
	}
	if ctx.Err() == nil && time.Since(opened) < time.Second {
		w.wait(ctx) // a server that closes each watch at once must not be asked in a loop
	}
	return nil
}

func (w *watching) list(ctx context.Context) error {
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
		if !w.tell(Note{Kind: Seen, Object: item}) {
			return context.Canceled
		}
		return nil
	})
	if err != nil {
		return err
	}
	l, err := meta.ListAccessor(found)
	if err != nil {
		return err
	}
	w.at = l.GetResourceVersion()
	if w.query.Limit == 0 {
		w.tell(Note{Kind: Listed, UIDs: uids})
	}
	return nil
}

func (w *watching) read(ctx context.Context, events watch.Interface) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, open := <-events.ResultChan():
			if !open {
				return nil
			}
			if err := w.take(event); err != nil {
				return err
			}
		}
	}
}

func (w *watching) take(event watch.Event) error {
	if event.Type == watch.Error {
		err := apierrors.FromObject(event.Object)
		var status *apierrors.StatusError
		if errors.As(err, &status) && status.Status().Code == http.StatusGone {
			return err
		}
		if apierrors.IsResourceExpired(err) || apierrors.IsTimeout(err) || apierrors.IsInternalError(err) {
			return err
		}
		return nil // one object that can't be decoded is no reason to stop
	}
	m, err := meta.Accessor(event.Object)
	if err != nil {
		return nil
	}
	if w.begins == nil {
		w.at = m.GetResourceVersion()
	}
	switch event.Type {
	case watch.Added, watch.Modified:
		if w.begins != nil {
			w.begins[m.GetUID()] = true
		}
		w.tell(Note{Kind: Seen, Object: event.Object})
	case watch.Deleted:
		w.tell(Note{Kind: Gone, Object: event.Object})
	case watch.Bookmark:
		if w.begins != nil && m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			w.tell(Note{Kind: Listed, UIDs: w.begins})
			w.at, w.begins = m.GetResourceVersion(), nil
		}
	}
	return nil
}
