package manifest

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Flatten returns the objects in obj: obj itself, or the items of a List of any
// kind, lists in lists too. An item without apiVersion and kind of a typed list
// such as ConfigMapList gets those of its list.
func Flatten(obj *unstructured.Unstructured) []*unstructured.Unstructured {
	kind, isList := strings.CutSuffix(obj.GetKind(), "List")
	items, ok := obj.Object["items"].([]any)
	if !isList || !ok {
		if isList && kind == "" {
			return nil // an empty List
		}
		return []*unstructured.Unstructured{obj}
	}
	var out []*unstructured.Unstructured
	for _, item := range items {
		m, ok := item.(map[string]any)
		if !ok {
			continue
		}
		o := &unstructured.Unstructured{Object: m}
		if o.GetKind() == "" && kind != "" {
			o = o.DeepCopy()
			o.SetKind(kind)
			o.SetAPIVersion(obj.GetAPIVersion())
		}
		out = append(out, Flatten(o)...)
	}
	return out
}
