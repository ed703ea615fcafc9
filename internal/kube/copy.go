package kube

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ShallowCopy copies an object so far that its metadata can be changed.
func ShallowCopy(obj *unstructured.Unstructured) *unstructured.Unstructured {
	out := maps.Clone(obj.Object)
	if meta, ok := out["metadata"].(map[string]any); ok {
		out["metadata"] = maps.Clone(meta)
	}
	return &unstructured.Unstructured{Object: out}
}
