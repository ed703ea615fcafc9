package verify

import (
	"errors"
	"fmt"
	"path"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"deployer/internal/kube"
	"deployer/internal/lazyregexp"
)

// A PermissionError names a permission that deployer's account lacks.
type PermissionError struct {
	Verb      string // patch, create, delete
	Group     string
	Resource  string
	Namespace string // empty for a cluster-wide permission
}

// Error begins with the word that the API server and Helm use.
func (e *PermissionError) Error() string { return "forbidden: " + e.Missing() }

// Missing says which permission is missing.
func (e *PermissionError) Missing() string {
	resource := e.Resource
	if e.Group != "" {
		resource += "." + e.Group
	}
	if e.Namespace == "" {
		return fmt.Sprintf("no permission to %s %s in the cluster", e.Verb, resource)
	}
	return fmt.Sprintf("no permission to %s %s in namespace %s", e.Verb, resource, e.Namespace)
}

// Hint says how to find out more.
func (e *PermissionError) Hint() string {
	if e.Resource == "customresourcedefinitions" {
		return "have somebody with that permission apply the definitions; to leave out those in a chart's crds/: --crds skip"
	}
	return "the account deployer runs as needs the permissions named above (kubectl auth can-i --list); server-side apply needs patch, and create for new objects"
}

// denialOfCreate is how older API servers word that an account may patch but not create, when an
// apply would create the object: with what the authorizer gives as its reason, which RBAC mostly
// doesn't.
// k8s.io/apiserver/pkg/endpoints/handlers/update.go of 1.29 (withAuthorization)
var denialOfCreate = lazyregexp.New(`^\S+ "[^"]*" is forbidden: (?:RBAC: .*)?$`)

// MissingPermission returns the missing permission that an error reports about an object in a
// namespace; nil for other errors, such as the refusal of an admission policy.
func MissingPermission(err error, namespace string) *PermissionError {
	answer, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsForbidden(err) {
		return nil
	}
	if denied := kube.DeniedRequest(err.Error()); denied != nil {
		return &PermissionError{Verb: denied.Verb, Resource: path.Join(denied.Resource, denied.Subresource), Group: denied.Group, Namespace: denied.Namespace}
	}
	about := answer.ErrStatus.Details
	if about == nil || !denialOfCreate().MatchString(answer.ErrStatus.Message) {
		return nil
	}
	return &PermissionError{Verb: "create", Resource: about.Kind, Group: about.Group, Namespace: namespace}
}
