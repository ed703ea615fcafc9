package compare

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/fields"
	"deployer/internal/kube"
)

// WithoutManagedFields is an object without managedFields.
func WithoutManagedFields(obj *unstructured.Unstructured) *unstructured.Unstructured {
	out := kube.ShallowCopy(obj)
	out.SetManagedFields(nil)
	return out
}

// SameContent reports whether two states of an object are equal apart from metadata that
// the server sets.
func SameContent(a, b *unstructured.Unstructured) bool {
	return reflect.DeepEqual(WithoutServerMetadata(a), WithoutServerMetadata(b))
}

// WithoutServerMetadata is an object without the metadata that the server sets.
func WithoutServerMetadata(obj *unstructured.Unstructured) map[string]any {
	o := kube.ShallowCopy(obj)
	if meta, ok := o.Object["metadata"].(map[string]any); ok {
		for _, name := range kube.ServerMetadata() {
			delete(meta, name)
		}
	}
	return o.Object
}

// Satisfies reports whether live has all that desired states.
func Satisfies(live, desired any) bool {
	switch w := desired.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		for key, v := range w {
			if !ok || !Satisfies(l[key], v) {
				return false
			}
		}
		return true
	case []any:
		l, _ := live.([]any)
		return slices.EqualFunc(l, w, Satisfies)
	}
	return fields.Equal(desired, live)
}

// SameQuantity reports whether two values of a field mean the same amount: 1000m is 1.
func SameQuantity(names []string, before, after any) bool {
	if !fields.IsQuantity(names) {
		return false
	}
	b, err := resource.ParseQuantity(fields.Scalar(before))
	if err != nil {
		return false
	}
	a, err := resource.ParseQuantity(fields.Scalar(after))
	return err == nil && a.Cmp(b) == 0
}
