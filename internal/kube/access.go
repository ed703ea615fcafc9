package kube

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MayRequest asks the API server whether the account may make a request. If the account may not
// ask either, the answer is yes, and a missing permission shows when the request is made.
// https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access
func (c *Cluster) MayRequest(ctx context.Context, what authorizationv1.ResourceAttributes) (bool, error) {
	typed, err := c.Typed()
	if err != nil {
		return false, err
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}
	answer, err := typed.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if apierrors.IsForbidden(err) {
		return true, nil
	}
	return err == nil && answer.Status.Allowed, err
}
