package watch

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"deployer/internal/kube"
)

const (
	watchedByNameLimit = 3                // objects of a kind that are watched one by one from the start
	maxNamedWatches    = 30               // watches of single objects: each takes a stream of the connection
	firstPoll          = 2 * time.Second  // between two readings of one object
	lastPoll           = 15 * time.Second // the same, after a while
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
		all.Go(func() { o.poll(ctx, name, func(e Event) { e.Name = name; handle(e) }) })
	}
	all.Wait()
}

// poll reads an object from time to time, by dry runs where it may not be read.
func (o Objects) poll(ctx context.Context, name string, handle Handler) {
	err := Watch(ctx, o.polled(name, firstPoll, o.get), Query{}, handle)
	if needsFallback(ctx, err) {
		err = Watch(ctx, o.polled(name, dryRunPoll, o.dryRun), Query{}, handle)
	}
	if needsFallback(ctx, err) {
		handle(Event{Kind: Denied, Text: "no permission to watch or get " + o.Description})
	}
}

// polled is a source of one object, which can't be watched.
func (o Objects) polled(name string, every time.Duration, read func(context.Context, string) (*unstructured.Unstructured, error)) Source {
	source := o.Source
	source.Watch, source.PollEvery = nil, every
	source.List = func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
		if err := o.ReadLimit.Wait(ctx); err != nil {
			<-ctx.Done() // its turn comes after the end of the wait
			return nil, err
		}
		obj, err := read(ctx, name)
		switch {
		case err == nil:
			return &unstructured.UnstructuredList{Items: []unstructured.Unstructured{*obj}}, nil
		case kube.NamesMissingObject(err):
			return &unstructured.UnstructuredList{}, nil
		}
		return nil, err
	}
	return source
}

func (o Objects) get(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	return o.Client.Get(ctx, name, metav1.GetOptions{})
}

// dryRun reads an object with only the permission to patch: the dry run of an empty patch
// returns the object unchanged.
func (o Objects) dryRun(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	return o.Client.Patch(ctx, name, types.MergePatchType, []byte("{}"), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
}
