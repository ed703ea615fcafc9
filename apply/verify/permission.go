package verify

import (
	"fmt"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	return "the account deployer runs as needs the permissions named above (kubectl auth can-i --list); server-side apply needs patch, and create for new objects"
}

// denial is how the API server words what its authorizer refuses.
// k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go
var denial = regexp.MustCompile(`cannot (\S+) resource "([^"]+)"(?: in API group "([^"]*)")?(?: in the namespace "([^"]*)")?`)

// MissingPermission returns the missing permission that an error reports; nil for other
// errors, such as the refusal of an admission policy.
func MissingPermission(err error) *PermissionError {
	if !apierrors.IsForbidden(err) {
		return nil
	}
	m := denial.FindStringSubmatch(err.Error())
	if m == nil {
		return nil
	}
	return &PermissionError{Verb: m[1], Resource: m[2], Group: m[3], Namespace: m[4]}
}
