package planfile

import (
	"encoding/json"
	"reflect"
	"slices"
	"sort"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"deployer/apply/fields"
	"deployer/apply/ownership"
	"deployer/internal/kube"
)

// A difference is one field of an object that isn't the same in two states.
type difference struct {
	path          fieldpath.Path
	before, after any
	had, has      bool
}

// bare is an object without metadata that only the server writes, and without status unless the chart
// states one.
func bare(obj, want *unstructured.Unstructured) map[string]any {
	out := make(map[string]any, len(obj.Object))
	for name, v := range obj.Object {
		out[name] = v
	}
	if meta, ok := out["metadata"].(map[string]any); ok {
		copied := make(map[string]any, len(meta))
		for name, v := range meta {
			if !kube.IsServerMetadata(name) {
				copied[name] = v
			}
		}
		out["metadata"] = copied
	}
	if want == nil || want.Object["status"] == nil {
		delete(out, "status")
	}
	return out
}

// differences lists the leaves that differ. Items of lists are matched by the
// keys by which managedFields speak of them, as the API server matches them;
// other lists are leaves. With partial, only what is in after counts.
func differences(before, after map[string]any, owned *fieldpath.Set, partial bool) []difference {
	w := &walk{partial: partial}
	w.compare(nil, owned, before, after, true, true)
	return w.found
}

type walk struct {
	partial bool
	found   []difference
}

func (w *walk) compare(path fieldpath.Path, owned *fieldpath.Set, a, b any, had, has bool) {
	if had && has && reflect.DeepEqual(a, b) || w.partial && !has {
		return
	}
	m, isMap := a.(map[string]any)
	n, isMapToo := b.(map[string]any)
	if (isMap || !had) && (isMapToo || !has) && len(m)+len(n) > 0 {
		w.maps(path, owned, m, n)
		return
	}
	if w.lists(path, owned, a, b, had, has) {
		return
	}
	w.found = append(w.found, difference{path.Copy(), a, b, had, has})
}

func (w *walk) maps(path fieldpath.Path, owned *fieldpath.Set, a, b map[string]any) {
	names := make([]string, 0, len(a)+len(b))
	for name := range a {
		names = append(names, name)
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		e := fieldpath.FieldNameElement(name)
		x, had := a[name]
		y, has := b[name]
		w.compare(append(path, e), owned.WithPrefix(e), x, y, had, has)
	}
}

// lists compares lists whose items have names; it reports whether these do.
func (w *walk) lists(path fieldpath.Path, owned *fieldpath.Set, a, b any, had, has bool) bool {
	l, isList := a.([]any)
	m, isListToo := b.([]any)
	if !isList && had || !isListToo && has || !isList && !isListToo {
		return false
	}
	naming := namingOf(owned)
	if naming == nil {
		return false
	}
	before, ok1 := naming(l)
	after, ok2 := naming(m)
	if !ok1 || !ok2 {
		return false
	}
	seen := map[string]bool{}
	for _, items := range [][]item{before, after} {
		for _, it := range items {
			if seen[it.name] {
				continue
			}
			seen[it.name] = true
			x, had := itemOf(before, it.name)
			y, has := itemOf(after, it.name)
			w.compare(append(path, it.element), owned.WithPrefix(it.element), x, y, had, has)
		}
	}
	return true
}

// An item is an item of a list by its name.
type item struct {
	name    string
	element fieldpath.PathElement
	value   any
}

func itemOf(items []item, name string) (any, bool) {
	for _, it := range items {
		if it.name == name {
			return it.value, true
		}
	}
	return nil, false
}

// namingOf tells from owned fields how the items of a list are named: by some
// of their fields, or by their value; nil when they have no names.
func namingOf(owned *fieldpath.Set) func([]any) ([]item, bool) {
	var naming func([]any) ([]item, bool)
	look := func(e fieldpath.PathElement) {
		switch {
		case naming != nil:
		case e.Key != nil:
			names := make([]string, 0, len(*e.Key))
			for _, f := range *e.Key {
				names = append(names, f.Name)
			}
			naming = func(list []any) ([]item, bool) { return byKey(list, names) }
		case e.Value != nil:
			naming = byValue
		}
	}
	owned.Members.Iterate(look)
	owned.Children.Iterate(look)
	return naming
}

func byKey(list []any, names []string) ([]item, bool) {
	var out []item
	for _, v := range list {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		var pairs []any
		for _, name := range names {
			field, ok := m[name]
			if d := kube.KeyDefault(name); !ok && d != "" {
				field, ok = d, true
			}
			if !ok {
				return nil, false
			}
			pairs = append(pairs, name, field)
		}
		out = append(out, item{element: fieldpath.KeyElementByFields(pairs...), value: v})
	}
	return distinct(out)
}

func byValue(list []any) ([]item, bool) {
	var out []item
	for _, v := range list {
		out = append(out, item{element: fieldpath.MakePathOrDie(value.NewValueInterface(v))[0], value: v})
	}
	return distinct(out)
}

func distinct(items []item) ([]item, bool) {
	seen := map[string]bool{}
	for i := range items {
		name := items[i].element.String()
		if seen[name] {
			return nil, false
		}
		seen[name] = true
		items[i].name = name
	}
	return items, true
}

// entriesOf reads an object's managedFields; what can't be read says nothing.
func entriesOf(obj *unstructured.Unstructured) []ownership.Entry {
	if obj == nil {
		return nil
	}
	entries, err := ownership.Parse(obj.GetManagedFields())
	if err != nil {
		return nil
	}
	return entries
}

func unionOf(lists ...[]ownership.Entry) *fieldpath.Set {
	out := fieldpath.NewSet()
	for _, list := range lists {
		for _, e := range list {
			out = out.Union(e.Set)
		}
	}
	return out
}

// ownersOf lists who owns the field at a path, or the atomic value it is in.
func ownersOf(entries []ownership.Entry, path fieldpath.Path) []string {
	var out []string
	for _, e := range entries {
		if fields.Owns(e.Set, path) && !slices.Contains(out, e.Label()) {
			out = append(out, e.Label())
		}
	}
	sort.Strings(out)
	return out
}

// states says whether an object says something at a path, or at what it is in.
func states(obj *unstructured.Unstructured, path fieldpath.Path) bool {
	if obj == nil {
		return false
	}
	for n := len(path); n > 0; n-- {
		v, ok := fields.Value(obj.Object, path[:n])
		if !ok {
			continue
		}
		_, isMap := v.(map[string]any)
		return n == len(path) || !isMap && !isKeyed(path[n])
	}
	return false
}

func isKeyed(e fieldpath.PathElement) bool { return e.Key != nil || e.Value != nil }

// show writes a value for people.
func show(v any, ok bool) string {
	if !ok {
		return ""
	}
	if _, err := json.Marshal(v); err != nil {
		return ""
	}
	return fields.Text(v, true)
}
