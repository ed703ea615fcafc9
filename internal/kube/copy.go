package kube

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ShallowCopy copies an object so that its fields and those of its metadata can be replaced. What
// they contain is shared.
func ShallowCopy(obj *unstructured.Unstructured) *unstructured.Unstructured {
	out := maps.Clone(obj.Object)
	if meta, ok := out["metadata"].(map[string]any); ok {
		out["metadata"] = maps.Clone(meta)
	}
	return &unstructured.Unstructured{Object: out}
}
