package kube

import (
	"context"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/internal/lazyregexp"
)

// MayRequest asks the API server whether the account may make a request. If the account may not
// ask either, the answer is yes, and a missing permission shows when the request is made.
// https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access
func (c *Cluster) MayRequest(ctx context.Context, what authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}
	answer, err := c.Typed().AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if apierrors.IsForbidden(err) {
		return true, nil
	}
	return err == nil && answer.Status.Allowed, err
}

// authorizersDenial is how the API server words what its authorizer refuses.
// k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go
var authorizersDenial = lazyregexp.New(`cannot (\S+) resource "([^"/]+)/?([^"]*)"(?: in API group "([^"]*)")?(?: in the namespace "([^"]*)")?`)

// DeniedRequest returns what the authorizer has refused by a message, without the name of the object; nil if the message
// isn't the authorizer's.
func DeniedRequest(message string) *authorizationv1.ResourceAttributes {
	m := authorizersDenial().FindStringSubmatch(message)
	if m == nil {
		return nil
	}
	return &authorizationv1.ResourceAttributes{Verb: m[1], Resource: m[2], Subresource: m[3], Group: m[4], Namespace: m[5]}
}

// isAdmissionDenial reports whether a message says that an admission webhook or policy refuses an object. A webhook may give
// that any code, such as 409 or 503.
// k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go
func isAdmissionDenial(message string) bool {
	return strings.Contains(message, "denied the request") || strings.Contains(message, "denied request")
}

// IsDenial reports whether an error is the refusal of an admission webhook or policy, whatever its code.
func IsDenial(err error) bool { return err != nil && isAdmissionDenial(err.Error()) }

// IsRefused reports whether admission doesn't let a request happen: a webhook or a policy denies it, or a webhook doesn't answer.
// k8s.io/apiserver/pkg/admission/plugin/webhook/errors.go
func IsRefused(err error) bool {
	return IsDenial(err) || err != nil && strings.Contains(err.Error(), "failed calling webhook")
}

// IsConflict reports whether the API server says that an object has changed in the meantime.
func IsConflict(err error) bool { return apierrors.IsConflict(err) && !IsDenial(err) }

// IsAlreadyExists reports whether the API server says that there is such an object already.
func IsAlreadyExists(err error) bool { return apierrors.IsAlreadyExists(err) && !IsDenial(err) }
