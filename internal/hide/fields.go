// Package hide decides what must not be shown: confidential fields of objects, and
// confidential texts. What is confidential is hidden: output has Placeholder in its place.
package hide

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/internal/annotation"
)

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
		f.whole = f.whole || IsSecret(obj)
		if isCustom(obj) {
			f.addSecretFields(nil, obj.Object)
		}
		annotations := obj.GetAnnotations()
		sensitive, unreadable := annotation.Sensitive.ReadAll(annotations)
		f.whole = f.whole || len(unreadable) > 0 || slices.Contains(sensitive, true)
		lists, unreadable := annotation.SensitivePaths.ReadAll(annotations)
		f.whole = f.whole || len(unreadable) > 0
		for _, paths := range lists {
			for _, text := range splitPaths(paths) {
				pattern, ok := parsePath(text)
				if !ok {
					f.whole = true
					continue
				}
				f.patterns = append(f.patterns, pattern)
			}
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
	if len(names) == 0 {
		return false
	}
	hidden, _ := secretField(names)
	return f.whole && hidden || slices.ContainsFunc(f.patterns, func(p []string) bool { return matches(p, names) })
}

// HasHiddenWithin reports whether something at a path or in it may be confidential.
func (f Fields) HasHiddenWithin(names []string) bool {
	_, within := secretField(names)
	return f.IsHidden(names) || f.whole && within ||
		slices.ContainsFunc(f.patterns, func(p []string) bool { return matchesBelow(p, names) })
}

// visibleFields are the fields that anybody may see.
var visibleFields = map[string]bool{"apiVersion": true, "kind": true, "type": true, "immutable": true}

// openAnnotations are prefixes of annotations that contain no data of the object. Others may:
// some tools keep copies of Secrets in annotations.
var openAnnotations = []string{"meta.helm.sh/", "helm.sh/", annotation.Prefix, annotation.WerfPrefix}

// secretField reports whether a field of an object that is confidential as a whole is hidden, and whether something in it is.
func secretField(names []string) (hidden, within bool) {
	switch {
	case len(names) > 0 && visibleFields[names[0]]:
		return false, false
	case len(names) == 0 || names[0] != "metadata":
		return len(names) > 1, true
	case len(names) == 1 || len(names) == 2 && names[1] == "annotations":
		return false, true
	case names[1] != "annotations":
		return false, false
	}
	hidden = !slices.ContainsFunc(openAnnotations, func(prefix string) bool { return strings.HasPrefix(names[2], prefix) })
	return hidden, hidden
}

// isCustom reports whether an object may be a custom resource: its API group has a
// domain that isn't Kubernetes' own.
func isCustom(obj *unstructured.Unstructured) bool {
	group := obj.GroupVersionKind().Group
	return strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io")
}

// addSecretFields adds the fields of a custom resource from which its controller makes Secrets:
// stringData at any depth, data of a Secret template, and the data of embedded Secrets.
// https://github.com/bitnami-labs/sealed-secrets#sealedsecret-templates
// https://external-secrets.io/latest/guides/templating/
func (f *Fields) addSecretFields(names []string, v any) {
	switch v := v.(type) {
	case map[string]any:
		secret := len(names) > 0 && v["kind"] == "Secret" && v["apiVersion"] == "v1"
		for key, item := range v {
			at := append(names[:len(names):len(names)], key)
			if key == "stringData" || key == "data" && (secret || inTemplate(names)) {
				f.patterns = append(f.patterns, append(at[:len(at):len(at)], anyStep))
				continue
			}
			f.addSecretFields(at, item)
		}
	case []any:
		for _, item := range v {
			f.addSecretFields(append(names[:len(names):len(names)], Item), item)
		}
	}
}

// inTemplate reports whether a path ends at a template of a Secret, or at an item of
// a list of such templates.
func inTemplate(names []string) bool {
	last := len(names) - 1
	if last >= 0 && names[last] == Item {
		last--
	}
	return last >= 0 && (names[last] == "template" || names[last] == "secretTemplate" || strings.HasSuffix(names[last], "ecretTemplates"))
}
