package track

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"deployer/track/watch"
)

// A watchRequest asks for the objects of one resource, in one namespace or in all.
type watchRequest struct {
	resource           string // for people: "pods"
	namespace          string // empty for all
	source             watch.Source
	query              watch.Query
	handle             func(watch.Event) // called by the session's goroutine
	watchEachNamespace func()            // goes on without the permission for all namespaces
	unavailable        string            // what is missing without the watch, for people
}

// startWatch opens a watch until ctx ends.
func (s *session) startWatch(ctx context.Context, r watchRequest) {
	s.tasks.group.Go(func() {
		err := watch.Watch(ctx, r.source, r.query, func(e watch.Event) {
			s.tasks.send(func() { r.handle(e) })
		})
		if err != nil && ctx.Err() == nil {
			s.tasks.send(func() { s.fallBack(r, err) })
		}
	})
}

// fallBack handles a watch that the API server has refused: it watches each namespace
// instead, or does without.
func (s *session) fallBack(r watchRequest, err error) {
	switch {
	case apierrors.IsUnauthorized(err):
		s.fatal = &unauthorizedError{err}
	case r.namespace != "":
		s.warn(r.unavailable + " unavailable: " + refusalText(err, "list and watch "+r.resource, r.namespace))
	default:
		if !apierrors.IsForbidden(err) {
			s.warn("watching " + r.resource + " in each namespace: " + err.Error())
		}
		r.watchEachNamespace()
	}
}

// refusalText says why the API server refuses to do something in a namespace.
func refusalText(err error, what, namespace string) string {
	if apierrors.IsForbidden(err) {
		return "no permission to " + what + " in namespace " + namespace
	}
	return err.Error()
}
