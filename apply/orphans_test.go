package apply

import (
	"errors"
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"deployer/apply/provenance"
	"deployer/internal/kube"
)

type noAnswer struct{ err error }

func (n noAnswer) RoundTrip(*http.Request) (*http.Response, error) { return nil, n.err }

// TestHooksThatCannotBeLookedUpAreAnError fails if an object that has become a hook is
// deleted because its kind couldn't be looked up.
func TestHooksThatCannotBeLookedUpAreAnError(t *testing.T) {
	failure := errors.New("no answer")
	a := New(kube.New(&rest.Config{Host: "http://nowhere", Transport: noAnswer{failure}}, "ns"), provenance.Owner{Release: "web", Namespace: "ns"}, Options{RetryTimeout: 1})
	hook := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c"}}}
	p := &planning{a: a, history: &releaseHistory{}, req: Request{OtherHooks: []kube.Manifest{{Object: hook}}}}
	p.resolver = &resolver{p: p}
	if list, err := (&pruner{planning: p}).orphans(t.Context()); !errors.Is(err, failure) {
		t.Errorf("orphans: %v, error %v; want %v", list, err, failure)
	}
}
