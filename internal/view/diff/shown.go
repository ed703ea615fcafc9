package diff

import (
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/internal/hide"
	"deployer/internal/kube"
)

// Hidden stands where a confidential value stood.
type Hidden struct{}

func (Hidden) String() string { return hide.Placeholder }

// MarshalJSON writes the same words.
func (h Hidden) MarshalJSON() ([]byte, error) { return json.Marshal(h.String()) }

// ShownManifest returns the fields of an object as they may be shown: those that a person wrote,
// with Hidden in place of confidential values. It doesn't change the object.
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
		out[key] = masked(confidential, []string{key}, v)
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
	if hasConfidential(secret, names, a) || hasConfidential(secret, names, b) {
		return nil, nil, true
	}
	f := Field{Before: a, After: b}.WithoutHidden(hidden)
	return f.Before, f.After, f.Hidden
}

// hasConfidential reports whether a value that stands at a path is confidential, or a part of it.
func hasConfidential(f hide.Fields, names []string, v any) bool {
	return hasHidden(masked(f, names, v))
}

// masked replaces what is confidential in a value that stands at a path.
func masked(f hide.Fields, names []string, v any) any {
	if v == nil || !f.HasHiddenWithin(names) {
		return v
	}
	if f.IsHidden(names) {
		return Hidden{}
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = masked(f, append(slices.Clip(names), key), item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = masked(f, append(slices.Clip(names), hide.Item), item)
		}
		return out
	}
	if len(names) == 1 && names[0] != "metadata" && f.IsHidden([]string{names[0], hide.Item}) {
		return Hidden{} // data that isn't a map
	}
	return v
}

func hasHidden(v any) bool {
	switch v := v.(type) {
	case Hidden:
		return true
	case map[string]any:
		for _, item := range v {
			if hasHidden(item) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasHidden)
	}
	return false
}
