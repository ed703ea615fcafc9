package e2e

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// hookAnnotation marks the objects of hooks.
const hookAnnotation = "helm.sh/hook"

// withoutHooks leaves out what hooks made: it is new in each release.
func withoutHooks(objects map[string]*unstructured.Unstructured) map[string]*unstructured.Unstructured {
	out := map[string]*unstructured.Unstructured{}
	for key, obj := range objects {
		if _, ok := obj.GetAnnotations()[hookAnnotation]; !ok {
			out[key] = obj
		}
	}
	return out
}

// hooksLeft are the hooks of charts that stay after an uninstall, as with Helm:
// their policy doesn't delete them.
func hooksLeft(chart string) []string {
	if chart == "rename" {
		return []string{"Job/migrate"}
	}
	return nil
}
