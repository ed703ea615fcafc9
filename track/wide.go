package track

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/track/watch"
)

// manyNamespaces is how many namespaces are watched one by one. Each is a stream
// of the connection, so with more of them one stream for all is tried first.
const manyNamespaces = 5

// startObjectWatches opens the streams of all feeds.
func (s *session) startObjectWatches() error {
	byResource := map[schema.GroupVersionResource][]*objectWatch{}
	for _, f := range s.objectWatches {
		byResource[f.mapping.Resource] = append(byResource[f.mapping.Resource], f)
	}
	for _, feeds := range byResource {
		if len(feeds) > manyNamespaces && s.startAllNamespaces(feeds) {
			continue
		}
		for _, f := range feeds {
			if err := f.start(); err != nil {
				return err
			}
		}
	}
	return nil
}

// startAllNamespaces watches a resource in all namespaces for feeds of many, where labels
// tell the targets from what is no concern of the release. Without the permission
// each feed watches for itself.
func (s *session) startAllNamespaces(feeds []*objectWatch) bool {
	var all []*trackedObject
	for _, f := range feeds {
		for _, sub := range f.objects {
			all = append(all, sub)
		}
	}
	query := watch.Query{Labels: commonLabels(all), From: startVersion(all)}
	client, err := s.tracker.cluster.ResourceAt(feeds[0].mapping, "")
	if err != nil || query.Labels == "" {
		return false
	}
	s.allNamespaces = true
	ctx, stop := context.WithCancel(s.ctx)
	for _, f := range feeds {
		f.query = query
	}
	s.group.Go(func() {
		defer stop()
		for _, f := range feeds {
			<-f.ctx.Done()
		}
	})
	s.group.Go(func() {
		err := watch.Watch(ctx, watch.SourceOf(client), query, func(n watch.Event) bool {
			return s.send(func() { dispatch(feeds, n) })
		})
		if err == nil || ctx.Err() != nil || apierrors.IsUnauthorized(err) {
			return
		}
		s.send(func() {
			if !apierrors.IsForbidden(err) {
				s.warn("watching " + feeds[0].mapping.Resource.GroupResource().String() + " in each namespace: " + err.Error())
			}
			for _, f := range feeds {
				if err := f.start(); err != nil {
					s.fatal = err
				}
			}
		})
	})
	return true
}

// dispatch gives each feed what concerns its namespace.
func dispatch(feeds []*objectWatch, n watch.Event) {
	for _, f := range feeds {
		if n.Object == nil {
			f.handle(n)
			continue
		}
		if m, err := meta.Accessor(n.Object); err == nil && m.GetNamespace() == f.namespace {
			f.handle(n)
		}
	}
}
