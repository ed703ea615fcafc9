// Package hide decides what must not be shown, by a rule of three sentences. By place: the content of Secrets and what the
// user has marked is hidden always (Fields). By text: a confidential text is hidden wherever others have written it, but only if it can't
// be a word or the chart has generated it, and never where a name stands or what is in plain sight elsewhere (Texts). Documents
// inside of a confidential text count leaf by leaf, each by its own key.
package hide

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/internal/annotation"
	"deployer/internal/lazyregexp"
)

// Placeholder stands where something confidential stood.
const Placeholder = "(hidden)"

// Fields are the confidential fields of an object. The zero value has none.
type Fields struct {
	whole    bool
	patterns [][]string
}

// Item stands for an item of a list in a path of field names.
const Item = "[]"

// ConfidentialFields returns the fields that are confidential in any of the given states
// of an object; nil states are ignored. These are all fields of a Secret, the fields that
// the annotations name, and the fields from which a custom resource's controller makes
// Secrets. If an annotation can't be read, all fields are confidential.
func ConfidentialFields(states ...*unstructured.Unstructured) Fields {
	var f Fields
	for _, obj := range states {
		if obj == nil {
			continue
		}
		if group := obj.GroupVersionKind().Group; strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io") { // a custom resource
			f.addSecretFields(obj.Object)
		}
		sensitive, unreadable := annotation.Sensitive.ReadAll(obj.GetAnnotations())
		lists, unreadableLists := annotation.SensitivePaths.ReadAll(obj.GetAnnotations())
		f.whole = f.whole || IsSecret(obj) || slices.Contains(sensitive, true) || len(unreadable)+len(unreadableLists) > 0
		for _, list := range lists {
			patterns, ok := parsePaths(list)
			f.whole = f.whole || !ok
			f.patterns = append(f.patterns, patterns...)
		}
	}
	return f
}

// IsSecret reports whether obj is a Secret.
func IsSecret(obj *unstructured.Unstructured) bool {
	return obj != nil && IsSecretKind(obj.GroupVersionKind().GroupKind())
}

// IsSecretKind reports whether a kind is that of Secrets.
func IsSecretKind(kind schema.GroupKind) bool { return kind == schema.GroupKind{Kind: "Secret"} }

// Any reports whether anything is confidential.
func (f Fields) Any() bool { return f.whole || len(f.patterns) > 0 }

// Whole reports whether the whole object is confidential, except its name, type and labels.
func (f Fields) Whole() bool { return f.whole }

// IsHidden reports whether the whole field at a path is confidential. A path is a list of
// field names, with Item for a list item. In a Secret, the items of data and stringData
// are confidential, but the maps themselves are not: it is no secret that they exist.
func (f Fields) IsHidden(names []string) bool {
	return f.whole && isContent(names) || slices.ContainsFunc(f.patterns, func(p []string) bool { return matches(p, names) })
}

// visibleFields are the fields that anybody may see.
var visibleFields = map[string]bool{"apiVersion": true, "kind": true, "type": true, "immutable": true}

// openAnnotations are prefixes of annotations that contain no data of the object. Others may:
// some tools keep copies of Secrets in annotations.
var openAnnotations = []string{"meta.helm.sh/", "helm.sh/", annotation.Prefix, annotation.WerfPrefix}

// isContent reports whether a field is hidden in an object that is confidential as a whole.
func isContent(names []string) bool {
	if len(names) < 2 || visibleFields[names[0]] {
		return false
	}
	isOpen := func(prefix string) bool { return strings.HasPrefix(names[2], prefix) }
	return names[0] != "metadata" || len(names) > 2 && names[1] == "annotations" && !slices.ContainsFunc(openAnnotations, isOpen)
}

// addSecretFields adds the fields of a custom resource from which its controller makes Secrets:
// stringData at any depth, data of a Secret template, and the data of embedded Secrets.
// https://github.com/bitnami-labs/sealed-secrets#sealedsecret-templates
// https://external-secrets.io/latest/guides/templating/
func (f *Fields) addSecretFields(obj map[string]any) {
	walk(obj, place{}, func(v any, at place) (any, bool) {
		m, _ := v.(map[string]any)
		isSecret := secretTemplate().MatchString(at.key) || m["kind"] == "Secret" && m["apiVersion"] == "v1"
		for key := range m {
			if key == "stringData" || key == "data" && isSecret {
				f.patterns = append(f.patterns, append(below(at.names, key), anyStep))
			}
		}
		return nil, false
	})
}

// secretTemplate matches keys of templates of Secrets, and of lists of such templates.
var secretTemplate = lazyregexp.New(`^template$|[sS]ecretTemplates?$`)

// Mask returns a copy of a value at a path with Placeholder in place of what is confidential, and whether anything is.
func (f Fields) Mask(names []string, v any) (shown any, hides bool) {
	if !f.Any() {
		return v, false
	}
	shown = f.mask(names, v, func(any, place) { hides = true })
	return shown, hides
}

// HidesAny reports whether anything is confidential in values that a field has or had.
func (f Fields) HidesAny(names []string, values ...any) bool {
	return slices.ContainsFunc(values, func(v any) bool {
		_, hides := f.Mask(names, v)
		return hides
	})
}

// mask is Mask that calls found with everything that it hides.
func (f Fields) mask(names []string, v any, found func(v any, at place)) any {
	return walk(v, place{names: names}, func(v any, at place) (any, bool) {
		isHidden := v != nil && f.IsHidden(at.names)
		switch v.(type) {
		case nil, map[string]any, []any:
		default: // data that isn't a map
			isHidden = isHidden || len(at.names) == 1 && f.IsHidden(below(at.names, Item))
		}
		if isHidden {
			found(v, at)
		}
		return Placeholder, isHidden
	})
}
