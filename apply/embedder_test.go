package apply_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// A program that contains Helm, such as Flux's helm-controller, owns finalizers as itself.
func TestFinalizerOfHelmController(t *testing.T) {
	s := begin(t)
	s.deploy(config("a"))
	s.patch("v1", "ConfigMap", "a", types.MergePatchType, `{"metadata":{"finalizers":["example.com/x"]}}`, "helm-controller")
	s.expect(s.deploy(config("a")))
	s.deploy(config("a") + config("b"))
	if got := s.get("v1", "ConfigMap", "a").GetFinalizers(); len(got) != 1 {
		t.Errorf("finalizers: %v", got)
	}
	s.patch("v1", "ConfigMap", "a", types.MergePatchType, `{"metadata":{"finalizers":null}}`, "helm-controller")
}
