package verify

import (
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/internal/kube"
)

// Each kind of answer has its verdict, in the words of the API server.
func TestVerdicts(t *testing.T) {
	maps := schema.GroupResource{Resource: "configmaps"}
	answer := func(code int, text string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Message: text, Reason: map[int]metav1.StatusReason{
			http.StatusBadRequest: metav1.StatusReasonBadRequest, http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusUnprocessableEntity: metav1.StatusReasonInvalid,
		}[code]}}
	}
	for _, c := range []struct {
		name string
		err  error
		want Verdict
	}{
		{"no error", nil, Accepted},
		{"invalid", answer(http.StatusUnprocessableEntity, `ConfigMap "a" is invalid: data: Too long`), Rejected},
		{"a webhook with side effects", answer(http.StatusBadRequest, `admission webhook "x" does not support dry run`), Unverified},
		{"the authorizer", answer(http.StatusForbidden, `configmaps "a" is forbidden: User "u" cannot patch resource "configmaps" in API group "" in the namespace "n"`), Forbidden},
		{"the authorizer of Kubernetes 1.29", apierrors.NewForbidden(maps, "a", errors.New("")), Forbidden},
		{"the authorizer of Kubernetes 1.29 that met a mistake", apierrors.NewForbidden(maps, "a", errors.New(`RBAC: role.rbac.authorization.k8s.io "x" not found`)), Forbidden},
		{"an admission policy", answer(http.StatusForbidden, `configmaps "a" is forbidden: ValidatingAdmissionPolicy 'p' denied request`), Rejected},
		{"another version", apierrors.NewConflict(maps, "a", errors.New("the object has been modified")), Modified},
		{"gone", apierrors.NewNotFound(maps, "a"), Vanished},
		{"its namespace is missing", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "n"), Rejected},
		{"an older server", answer(http.StatusInternalServerError, "failed to create typed patch object: .spec.x: field not declared in schema"), UnknownField},
		{"the network", errors.New("connection refused"), Unanswered},
	} {
		if got := VerdictOf(kube.ID{Kind: "ConfigMap", Namespace: "n", Name: "a"}, c.err); got != c.want {
			t.Errorf("%s: verdict %d, want %d", c.name, got, c.want)
		}
	}
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "n")
	if got := VerdictOf(kube.ID{Kind: "Namespace", Name: "n"}, gone); got != Vanished {
		t.Errorf("a Namespace that is gone: verdict %d", got)
	}
}
