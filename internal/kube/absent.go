package kube

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// An UnservedError says that an API server doesn't serve a kind that it lists, so that nobody knows whether
// an object of that kind exists. One of several API servers may not know a new definition yet, and the
// server of an aggregated API, or a proxy, may answer like that when something else is wrong.
type UnservedError struct {
	Mapping Mapping // where the cluster lists the kind
	Answer  string  // of the API server
}

func (e *UnservedError) Error() string {
	return fmt.Sprintf("the API server answers as if it didn't serve the kind, but lists %s in %s, so it is unknown whether the object exists: %s",
		e.Mapping.GVK.Kind, e.Mapping.GVK.GroupVersion(), e.Answer)
}

// Hint says what to do about it.
func (e *UnservedError) Hint() string {
	return "try again in a moment. If that doesn't help, ask the cluster itself: kubectl get " + e.Mapping.Resource.GroupResource().String()
}

// NamesMissingObject reports whether an answer says that an object, or its namespace, doesn't exist. A 404 for a kind that
// isn't served has no name in its details, or, if no API server wrote it, a cause that client-go adds.
// k8s.io/apimachinery/pkg/api/errors, NewNotFound and NewGenericServerResponse
func NamesMissingObject(err error) bool {
	answer, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsNotFound(err) || IsDenial(err) {
		return false
	}
	details := answer.ErrStatus.Details
	return details != nil && details.Name != "" && len(details.Causes) == 0
}

// ConfirmAbsent returns nil if a NotFound answer means that the object certainly isn't there: the answer names it, or the
// cluster, asked again, doesn't serve its kind. Otherwise the error is an *UnservedError, or why the kinds are unknown.
func (c *Cluster) ConfirmAbsent(ctx context.Context, m Mapping, answer error) error {
	if NamesMissingObject(answer) {
		return nil
	}
	gk := m.GVK.GroupKind().WithVersion("")
	known, err := c.discover(ctx)
	if err != nil {
		return err
	}
	if _, served := known.preferred[Canonical(gk.GroupKind())]; served {
		c.forgetKinds(known)
	}
	switch served, err := c.Mapping(ctx, gk, true); {
	case err == nil:
		return &UnservedError{Mapping: served, Answer: answer.Error()}
	case !errors.As(err, new(*NoKindMatchError)):
		return err
	}
	return nil
}
