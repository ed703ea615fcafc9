// Package fields has the fields of objects: paths to them, as people write them
// and as sigs.k8s.io/structured-merge-diff has them, and the values there.
package fields

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"deployer/internal/hide"
	"deployer/internal/kube"
)

// String writes a path as people write it:
// spec.template.spec.containers[name="app"].image
func String(p fieldpath.Path) string {
	var b strings.Builder
	for _, e := range p {
		if e.FieldName != nil {
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(name(*e.FieldName))
			continue
		}
		b.WriteString(e.String())
	}
	return b.String()
}

// name writes the name of a field in a path: quoted if it has dots or brackets. The nicer
// metadata.labels["app.kubernetes.io/name"] would look like a list item to programs.
func name(s string) string {
	if strings.ContainsAny(s, ".[]") {
		return fmt.Sprintf("%q", s)
	}
	return s
}

// Join adds the name of a field to a path as text, which may be empty.
func Join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// IsField reports whether an element of a path is the field of a name.
func IsField(e fieldpath.PathElement, name string) bool {
	return e.FieldName != nil && *e.FieldName == name
}

// Has reports whether there is something at a path.
func Has(obj any, p fieldpath.Path) bool {
	_, ok := Value(obj, p)
	return ok
}

// Value finds what is at a path. Its second result is false when nothing is.
// List items are found by their keys; an absent key field has the value of
// kube.KeyDefault.
func Value(obj any, p fieldpath.Path) (any, bool) {
	for _, e := range p {
		next, ok := child(obj, e)
		if !ok {
			return nil, false
		}
		obj = next
	}
	return obj, true
}

func child(obj any, e fieldpath.PathElement) (any, bool) {
	if e.FieldName != nil {
		m, ok := obj.(map[string]any)
		if !ok {
			return nil, false
		}
		v, ok := m[*e.FieldName]
		return v, ok
	}
	list, ok := obj.([]any)
	if !ok {
		return nil, false
	}
	if i := Index(list, e); i >= 0 {
		return list[i], true
	}
	return nil, false
}

// Index finds the item of a list that a path element names; -1 when none is.
func Index(list []any, e fieldpath.PathElement) int {
	if e.Index != nil {
		if *e.Index < len(list) {
			return *e.Index
		}
		return -1
	}
	for i, item := range list {
		if e.Value != nil && value.Equals(value.NewValueInterface(item), *e.Value) {
			return i
		}
		if e.Key != nil && hasKey(item, *e.Key) {
			return i
		}
	}
	return -1
}

func hasKey(item any, key value.FieldList) bool {
	m, ok := item.(map[string]any)
	if !ok {
		return false
	}
	for _, f := range key {
		v, ok := m[f.Name]
		if !ok {
			v = kube.KeyDefault(f.Name)
		}
		if !value.Equals(value.NewValueInterface(v), f.Value) {
			return false
		}
	}
	return true
}

// Owns reports whether a set has the field at a path, something below it, or the atomic
// value that contains it.
func Owns(set *fieldpath.Set, path fieldpath.Path) bool {
	for i, e := range path {
		if set.Members.Has(e) && (i == len(path)-1 || set.WithPrefix(e).Empty()) {
			return true
		}
		set = set.WithPrefix(e)
	}
	return !set.Empty() // something inside of it
}

// HasIn reports whether a set has a path, or one that begins with it.
func HasIn(set *fieldpath.Set, path fieldpath.Path) bool {
	return set.Has(path) || !WithPrefix(set, path).Empty()
}

// Remove takes what is at a path out of obj, and reports whether it was there.
func Remove(obj map[string]any, p fieldpath.Path) bool {
	if len(p) == 0 || !Has(obj, p) {
		return false
	}
	at, last := p[:len(p)-1], p[len(p)-1]
	parent, _ := Value(obj, at)
	if m, ok := parent.(map[string]any); ok {
		delete(m, *last.FieldName)
		return true
	}
	list := parent.([]any)
	i := Index(list, last)
	holder, _ := Value(obj, at[:len(at)-1])
	m, ok := holder.(map[string]any)
	if ok { // a list of lists has no keys
		m[*at[len(at)-1].FieldName] = append(list[:i:i], list[i+1:]...)
	}
	return ok
}

// Names writes a path as package hide wants it.
func Names(path fieldpath.Path) []string {
	names := make([]string, len(path))
	for i, e := range path {
		names[i] = hide.Item
		if e.FieldName != nil {
			names[i] = *e.FieldName
		}
	}
	return names
}

// Covers reports whether a set has a path or one of its parents.
func Covers(set *fieldpath.Set, path fieldpath.Path) bool {
	for i := range path {
		if set.Has(path[:i+1]) {
			return true
		}
	}
	return false
}

// Topmost returns the members of set that have no member of set above them, in
// order: a removed list item stands for everything in it.
func Topmost(set *fieldpath.Set) []fieldpath.Path {
	var out []fieldpath.Path
	for p := range set.All() {
		if !Covers(set, p[:len(p)-1]) {
			out = append(out, p.Copy())
		}
	}
	slices.SortFunc(out, fieldpath.Path.Compare)
	return out
}

// Where returns the members of a set that keep returns true for.
func Where(set *fieldpath.Set, keep func(fieldpath.Path) bool) *fieldpath.Set {
	out := fieldpath.NewSet()
	for p := range set.All() {
		if keep(p) {
			out.Insert(p)
		}
	}
	return out
}

// WithPrefix is the part of a set under a path, with paths that begin there.
func WithPrefix(set *fieldpath.Set, path fieldpath.Path) *fieldpath.Set {
	for _, e := range path {
		set = set.WithPrefix(e)
	}
	return set
}
