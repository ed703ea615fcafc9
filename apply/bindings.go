package apply

import (
	"context"
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/fields"
)

// surviveRecreation reports whether our permissions survive that a binding is deleted and created again. They may
// not if our own account is a subject: after the deletion we might lack permission to create
// it again.
func (p *permissions) surviveRecreation(ctx context.Context, live *unstructured.Unstructured, immutable *ImmutableError) (bool, error) {
	gk := live.GroupVersionKind().GroupKind()
	if gk.Group != "rbac.authorization.k8s.io" || gk.Kind != "RoleBinding" && gk.Kind != "ClusterRoleBinding" {
		return true, nil
	}
	typed, err := p.a.cluster.Typed()
	if err != nil {
		return false, err
	}
	answer, err := answerTo(ctx, p.a.requester, func() (*authenticationv1.SelfSubjectReview, error) {
		return typed.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	})
	switch {
	case apierrors.IsNotFound(err):
		immutable.Never = true
		immutable.Advice = fmt.Sprintf("the API server can't say which account deployer runs as (Kubernetes 1.28 and later can), and %s may grant permissions to it,"+
			" so deployer doesn't delete it: delete it yourself, or give the new one another name", immutable.ID)
		return false, nil
	case err != nil:
		return false, err
	}
	us := answer.Status.UserInfo
	subjects, _, _ := unstructured.NestedSlice(live.Object, "subjects")
	for _, s := range subjects {
		if subject, ok := s.(map[string]any); ok && isSubject(us, subject) {
			immutable.Never = true
			immutable.Advice = fmt.Sprintf("%s grants permissions to the account that deployer runs as (%s), so deployer doesn't delete it:"+
				" delete it with another account, or give the new one another name", immutable.ID, us.Username)
			return false, nil
		}
	}
	return true, nil
}

// isSubject matches a subject of a binding as the authorizer does.
// k8s.io/kubernetes/pkg/registry/rbac/validation/rule.go, appliesToUser
func isSubject(us authenticationv1.UserInfo, subject map[string]any) bool {
	name := fields.AsString(subject["name"])
	switch fields.AsString(subject["kind"]) {
	case "User":
		return name == us.Username
	case "Group":
		return slices.Contains(us.Groups, name)
	case "ServiceAccount":
		return us.Username == "system:serviceaccount:"+fields.AsString(subject["namespace"])+":"+name
	}
	return false
}
