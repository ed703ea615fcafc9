package diff

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/internal/hide"
	"deployer/internal/kube"
)

// ShownManifest returns the fields of an object as they may be shown: those that a person wrote,
// with a placeholder for confidential values. It doesn't change the object.
func ShownManifest(obj *unstructured.Unstructured) map[string]any {
	if obj == nil {
		return nil
	}
	out := withoutBookkeeping(obj.Object)
	if metadata, ok := out["metadata"].(map[string]any); ok {
		metadata = withoutBookkeeping(metadata, "metadata")
		out["metadata"] = metadata
		if annotations, ok := metadata["annotations"].(map[string]any); ok {
			annotations = withoutBookkeeping(annotations, "metadata", "annotations")
			metadata["annotations"] = annotations
			if len(annotations) == 0 {
				delete(metadata, "annotations")
			}
		}
	}
	confidential := hide.ConfidentialFields(obj)
	for key, v := range out {
		out[key], _ = confidential.Mask([]string{key}, v)
	}
	return out
}

// withoutBookkeeping returns the entries of a map at a path that have a value and that no server writes.
func withoutBookkeeping(m map[string]any, path ...string) map[string]any {
	out := maps.Clone(m)
	maps.DeleteFunc(out, func(key string, v any) bool {
		return v == nil || kube.IsBookkeeping(append(slices.Clip(path), key))
	})
	return out
}

// ShownPair returns two values of one field as they may be shown; true means that neither may,
// because one is confidential.
func ShownPair(secret hide.Fields, hidden *hide.Texts, names []string, a, b any) (any, any, bool) {
	if secret.HidesAny(names, a, b) {
		return nil, nil, true
	}
	f := Field{Before: a, After: b}.WithoutHidden(hidden)
	return f.Before, f.After, f.Hidden
}
