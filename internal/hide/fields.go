// Package hide knows what nobody is to be shown: which fields of an object are
// confidential, and which texts are.
package hide

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/internal/annotation"
)

// Fields are the confidential ones of an object. The zero value has none.
type Fields struct {
	whole    bool
	patterns [][]string
}

// Item stands for an item of a list in a path of field names.
const Item = "[]"

// Of reads which fields are confidential in any of some states of an object,
// nil ones left out: all of a Secret's, whatever its annotations say, and what
// the annotations name, and what custom resources make Secrets of. An annotation
// that can't be read hides everything.
func Of(states ...*unstructured.Unstructured) Fields {
	var f Fields
	for _, obj := range states {
		if obj == nil {
			continue
		}
		f.whole = f.whole || IsSecret(obj)
		if isCustom(obj) {
			f.secretsIn(nil, obj.Object)
		}
		annotations := obj.GetAnnotations()
		_, _, unreadable := annotation.Sensitive.Read(annotations)
		f.whole = f.whole || len(unreadable) > 0 || slices.Contains(annotation.Sensitive.ReadAll(annotations), true)
		for _, paths := range annotation.SensitivePaths.ReadAll(annotations) {
			for _, text := range split(paths) {
				pattern, ok := parse(text)
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

// IsSecret tells whether obj is a Secret.
func IsSecret(obj *unstructured.Unstructured) bool {
	return obj != nil && obj.GetKind() == "Secret" && obj.GroupVersionKind().Group == ""
}

// Any tells whether anything is confidential.
func (f Fields) Any() bool { return f.whole || len(f.patterns) > 0 }

// Whole tells whether all of the object is confidential but its name, type and
// labels.
func (f Fields) Whole() bool { return f.whole }

// At tells whether the field at a path is confidential as a whole. The path is
// field names, and Item for items of lists. Of a Secret, the maps data and
// stringData are so by their items: that one came is no secret.
func (f Fields) At(names []string) bool {
	if len(names) == 0 {
		return false
	}
	if f.whole && closed(names) {
		return true
	}
	for _, p := range f.patterns {
		if matches(p, names) {
			return true
		}
	}
	return false
}

// Below tells whether something at a path or in it may be confidential.
func (f Fields) Below(names []string) bool {
	if f.At(names) || f.whole && opens(names) {
		return true
	}
	for _, p := range f.patterns {
		if leadsTo(p, names) {
			return true
		}
	}
	return false
}

// opens tells whether something in what is at a path of an object that is
// confidential as a whole is hidden.
func opens(names []string) bool {
	switch {
	case len(names) == 0:
		return true
	case names[0] == "metadata":
		return len(names) == 1 || len(names) == 2 && names[1] == "annotations"
	}
	return !open[names[0]]
}

// open are the fields that anybody may see.
var open = map[string]bool{"apiVersion": true, "kind": true, "type": true, "immutable": true}

// openAnnotations begin the annotations that hold no data of the object.
// Others may: tools keep copies of Secrets in annotations.
var openAnnotations = []string{"meta.helm.sh/", "helm.sh/", annotation.Prefix, annotation.WerfPrefix}

// closed tells whether a field of an object that is confidential as a whole is
// hidden.
func closed(names []string) bool {
	if open[names[0]] {
		return false
	}
	if names[0] != "metadata" {
		return len(names) > 1
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
