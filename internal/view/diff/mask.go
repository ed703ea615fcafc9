package diff

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Hidden stands where a value of a Secret stood. It knows its size and nothing
// else.
type Hidden struct{ Bytes int }

func (h Hidden) String() string {
	if h.Bytes == 1 {
		return "(hidden, 1 byte)"
	}
	return fmt.Sprintf("(hidden, %d bytes)", h.Bytes)
}

// MarshalJSON writes the same words.
func (h Hidden) MarshalJSON() ([]byte, error) { return json.Marshal(h.String()) }

// IsSecret tells whether obj is a Secret.
func IsSecret(obj *unstructured.Unstructured) bool {
	return obj != nil && obj.GetKind() == "Secret" && obj.GroupVersionKind().Group == ""
}

// Masked returns the fields of obj that a person wrote: without those that
// servers write, and with Hidden in place of all values of a Secret.
// The object itself is not changed.
func Masked(obj *unstructured.Unstructured) map[string]any {
	if obj == nil {
		return nil
	}
	secret := IsSecret(obj)
	out := map[string]any{}
	for key, v := range obj.Object {
		p := path{}.field(key)
		if noise(p, v, nil) || v == nil {
			continue
		}
		if key == "metadata" {
			v = tidied(v)
		}
		if secret {
			v = masked(p.names, v)
		}
		out[key] = v
	}
	return out
}

// tidied is metadata without noise.
func tidied(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := map[string]any{}
	for key, v := range m {
		if serverMetadata[key] || v == nil {
			continue
		}
		if annotations, ok := v.(map[string]any); ok && key == "annotations" {
			kept := map[string]any{}
			for name, text := range annotations {
				if !keptAnnotations[name] {
					kept[name] = text
				}
			}
			if len(kept) == 0 {
				continue
			}
			v = kept
		}
		out[key] = v
	}
	return out
}

// open are the fields of a Secret that anybody may see.
var open = map[string]bool{"apiVersion": true, "kind": true, "type": true, "immutable": true}

// openAnnotations begin the annotations of a Secret that hold no data of it.
// Others may: tools keep copies of Secrets in annotations.
var openAnnotations = []string{"meta.helm.sh/", "helm.sh/", "deployer.io/"}

// hides tells whether the value at a path of a Secret is hidden as a whole.
func hides(names []string) bool {
	if len(names) == 0 || open[names[0]] {
		return false
	}
	if names[0] != "metadata" {
		return len(names) > 1 // the maps data and stringData by their items
	}
	if len(names) < 3 || names[1] != "annotations" {
		return false
	}
	for _, prefix := range openAnnotations {
		if strings.HasPrefix(names[2], prefix) {
			return false
		}
	}
	return true
}

// masked replaces what is hidden in a value of a Secret that stands at a path.
func masked(names []string, v any) any {
	if v == nil {
		return nil
	}
	if hides(names) {
		return Hidden{Bytes: size(names, v)}
	}
	m, ok := v.(map[string]any)
	if !ok {
		if len(names) == 1 && !open[names[0]] && names[0] != "metadata" {
			return Hidden{Bytes: size(names, v)} // data that isn't a map
		}
		return v
	}
	out := make(map[string]any, len(m))
	for key, item := range m {
		out[key] = masked(append(names[:len(names):len(names)], key), item)
	}
	return out
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
	}
	return false
}

// size is how long a value is, in bytes: of data, decoded.
func size(names []string, v any) int {
	text, ok := v.(string)
	if !ok {
		return len(scalar(v))
	}
	if names[0] == "data" {
		if decoded, err := base64.StdEncoding.DecodeString(text); err == nil {
			return len(decoded)
		}
	}
	return len(text)
}
