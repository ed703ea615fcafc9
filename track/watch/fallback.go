package watch

import (
	"cmp"
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"deployer/internal/kube"
)

const (
	watchedByNameLimit = 3                // objects of a kind that are watched one by one from the start
	maxNamedWatches    = 30               // watches of single objects: each takes a stream of the connection
	firstPoll          = 2 * time.Second  // between two readings of one object
	lastPoll           = 15 * time.Second // the same, for one that stays as it is
	dryRunPoll         = 10 * time.Second // between two dry runs for one object
)

// Objects are named objects of one resource in one namespace.
type Objects struct {
	Source
	Client      dynamic.ResourceInterface // of the Source
	Description string                    // for people: "deployments.apps in namespace prod"
	Names       []string
	Query       Query         // Labels and Fields that find them all; empty finds all of the namespace
	ReadLimit   *rate.Limiter // of reading single objects, shared with others
}

// WatchWithFallback reports changes of the objects until ctx ends, by the best permitted
// means. Few objects are watched by name, which a Role with resourceNames permits.
// https://kubernetes.io/docs/reference/access-authn-authz/rbac/#referring-to-resources
func WatchWithFallback(ctx context.Context, o Objects, handle Handler) {
	if len(o.Names) > watchedByNameLimit {
		err := Watch(ctx, o.Source, o.Query, handle)
		if !needsFallback(ctx, err) {
			return
		}
		if len(o.Names) > maxNamedWatches {
			o.pollAll(ctx, o.Names, handle)
			return
		}
		text := "watching " + o.Description + " one by one"
		if !apierrors.IsForbidden(err) {
			text += ": " + err.Error()
		}
		handle(Event{Kind: FellBack, Text: text})
	}
	var all sync.WaitGroup
	for _, name := range o.Names {
		handle := func(e Event) { e.Name = name; handle(e) }
		all.Go(func() {
			query := o.Query
			query.Labels = ""
			query.Fields = fields.OneTermEqualSelector("metadata.name", name).String()
			if needsFallback(ctx, Watch(ctx, o.Source, query, handle)) {
				o.pollAll(ctx, []string{name}, handle)
			}
		})
	}
	all.Wait()
}

// needsFallback reports whether a watch that ended with err needs a fallback.
func needsFallback(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && !apierrors.IsUnauthorized(err)
}

// pollAll polls objects one by one.
func (o Objects) pollAll(ctx context.Context, names []string, handle Handler) {
	handle(Event{Kind: FellBack, Text: "reading " + o.Description + " from time to time: no permission to watch them"})
	var all sync.WaitGroup
	for _, name := range names {
		all.Go(func() { o.poll(ctx, name, handle) })
	}
	all.Wait()
}

func (o Objects) poll(ctx context.Context, name string, handle Handler) {
	get := o.get
	api := reachability{handle: handle}
	var refusedBefore bool
	var unservedSince time.Time
	for interval := firstPoll; o.ReadLimit.Wait(ctx) == nil; {
		obj, answer := get(ctx, name)
		isAbsent, err := o.isAbsent(ctx, answer)
		if ctx.Err() != nil {
			return
		}
		if !isAbsent || kube.NamesMissingObject(answer) {
			unservedSince = time.Time{}
		} else if unservedSince = cmp.Or(unservedSince, time.Now()); time.Since(unservedSince) < o.UnservedFor {
			isAbsent, err = false, errUnserved
		}
		if err == nil || isRefusal(err) || apierrors.IsUnauthorized(err) {
			api.reportReachable()
		} else {
			api.reportUnreachable(err)
		}
		switch {
		case isAbsent:
			handle(Event{Kind: NotFound, Name: name})
		case err == nil:
			handle(Event{Kind: Changed, Object: obj})
		case isRefusal(err) && interval < dryRunPoll:
			get, interval = o.dryRun, dryRunPoll
			continue
		case isRefusal(err) && !refusedBefore:
			refusedBefore = true // one of several API servers may not know our roles yet
			if kube.Sleep(ctx, firstPoll) != nil {
				return
			}
			get, interval = o.get, firstPoll
			continue
		case isRefusal(err):
			handle(Event{Kind: Denied, Name: name, Text: "no permission to watch or get " + o.Description})
			return
		case apierrors.IsUnauthorized(err):
			handle(Event{Kind: Unauthorized, Err: err})
			return
		}
		if kube.Sleep(ctx, interval) != nil {
			return
		}
		interval = min(interval*3/2, lastPoll)
	}
}

// isAbsent reports whether an answer says that the object certainly isn't there. The error is the
// answer's, or says why that is unknown.
func (o Objects) isAbsent(ctx context.Context, answer error) (bool, error) {
	if !apierrors.IsNotFound(answer) {
		return false, answer
	}
	uncertain := o.ConfirmAbsent(ctx, answer)
	return uncertain == nil, uncertain
}

func (o Objects) get(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	return o.Client.Get(ctx, name, metav1.GetOptions{})
}

// dryRun reads an object with only the permission to patch: the dry run of an empty patch
// returns the object unchanged.
func (o Objects) dryRun(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	return o.Client.Patch(ctx, name, types.MergePatchType, []byte("{}"), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
}
