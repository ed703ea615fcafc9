package verify

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestRefusalsQuoteNoSecrets fails if what a policy or a webhook says of a Secret, in whatever words, is shown with its value. What the
// API server says itself of permissions stays as it is.
func TestRefusalsQuoteNoSecrets(t *testing.T) {
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s"}, "stringData": map[string]any{"password": "hunter2hunter2"},
	}}
	for text, quotes := range map[string]bool{
		`ValidatingAdmissionPolicy 'p' with binding 'b' denied request: password hunter2hunter2 cannot be that short`: false,
		`admission webhook "w.example.com" denied the request: hunter2hunter2 cannot be used`:                         false,
		`User "hunter2hunter2" cannot patch resource "secrets" in API group "" in the namespace "n"`:                  true,
	} {
		refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "s", errors.New(text))
		if got := AsServerError(secret, refusal).Error(); strings.Contains(got, "hunter2hunter2") != quotes {
			t.Errorf("%s", got)
		}
	}
}
