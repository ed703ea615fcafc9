package diff

import (
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"deployer/apply/compare"
	"deployer/internal/kube"
)

// listKeys names, for lists by the field they stand in, the fields that tell
// their items apart. The first set that fits all items is used.
// Lists that have keys by their schema don't come here: these are lists that are
// set as a whole, such as Ingress rules, and those of kinds whose definition calls
// no list a map.
var listKeys = map[string][][]string{
	"ports":                     {{"containerPort", "protocol"}, {"port", "protocol"}, {"port"}, {"name"}},
	"volumeMounts":              {{"mountPath"}},
	"volumeDevices":             {{"devicePath"}},
	"hostAliases":               {{"ip"}},
	"topologySpreadConstraints": {{"topologyKey", "whenUnsatisfiable"}},
	"conditions":                {{"type"}},
	"ownerReferences":           {{"uid"}},
	"paths":                     {{"path", "pathType"}, {"path"}},
	"rules":                     {{"host"}, {"name"}},
	"subjects":                  {{"kind", "namespace", "name"}, {"kind", "name"}},
	"items":                     {{"key"}, {"name"}},
	"matchExpressions":          {{"key", "operator"}},
	"tolerations":               {{"key", "operator", "effect"}, {"key", "effect"}},
	"endpoints":                 {{"port", "path"}, {"port"}},
	"groups":                    {{"name"}},
}

// anyKeys are tried for all other lists.
var anyKeys = [][]string{{"name"}, {"key"}, {"mountPath"}, {"topologyKey"}, {"ip"}, {"type"}, {"id"}}

// lists compares two lists: by the keys of their items if there are any that identify every
// item of both, else by position around what they have in common.
func (w *walker) lists(path fieldpath.Path, before, after []any, desired any) {
	desiredItems, _ := desired.([]any)
	name := ""
	if last := len(path) - 1; last >= 0 && path[last].FieldName != nil {
		name = *path[last].FieldName
	}
	for _, keys := range append(slices.Clone(listKeys[name]), anyKeys...) {
		old, ok := byKey(keys, before)
		now, alsoOK := byKey(keys, after)
		if ok && alsoOK {
			desiredByKey, _ := byKey(keys, desiredItems) // empty when they aren't told apart by these
			w.keyed(path, old, now, desiredByKey)
			return
		}
	}
	w.positions(path, before, after, desiredItems)
}

// A keyedList is a list whose items are told apart by a key.
type keyedList struct {
	keys  []fieldpath.PathElement // in order of the items
	items map[string]any          // by key
}

// byKey indexes a list. It fails when an item lacks a key or two share one.
func byKey(keys []string, list []any) (keyedList, bool) {
	out := keyedList{items: make(map[string]any, len(list))}
	for _, item := range list {
		key, ok := keyOf(keys, item)
		if _, twice := out.items[key.String()]; !ok || twice {
			return keyedList{}, false
		}
		out.keys, out.items[key.String()] = append(out.keys, key), item
	}
	return out, true
}

// keyOf is the key of an item, as managedFields have it.
func keyOf(keys []string, item any) (fieldpath.PathElement, bool) {
	m, ok := item.(map[string]any)
	if !ok {
		return fieldpath.PathElement{}, false
	}
	out := value.FieldList{}
	for _, key := range keys {
		v := m[key]
		if d := kube.KeyDefault(key); v == nil && d != "" {
			v = d
		}
		switch v.(type) {
		case nil, map[string]any, []any:
			return fieldpath.PathElement{}, false
		}
		out = append(out, value.Field{Name: key, Value: value.NewValueInterface(v)})
	}
	return fieldpath.PathElement{Key: &out}, true
}

func (w *walker) keyed(path fieldpath.Path, before, after, desired keyedList) {
	found := len(w.out)
	for i, key := range slices.Concat(before.keys, after.keys) {
		name := key.String()
		if i < len(before.keys) || before.items[name] == nil { // each once
			w.value(below(path, key), before.items[name], after.items[name], desired.items[name])
		}
	}
	if a, b := before.order(), after.order(); found == len(w.out) && !w.afterIsPartial && !equal(a, b) {
		w.emit(Field{Type: compare.Changed, Before: a, After: b}, path)
	}
}

// order lists the keys of the items, to tell that only their order has changed.
func (l keyedList) order() []any {
	out := make([]any, len(l.keys))
	for i, key := range l.keys {
		out[i] = strings.Trim(key.String(), "[]")
	}
	return out
}

func (w *walker) positions(path fieldpath.Path, before, after, desired []any) {
	if len(desired) != len(after) {
		desired = nil
	}
	at := func(list []any, i int) any {
		if i < len(list) {
			return list[i]
		}
		return nil
	}
	place := func(i int) fieldpath.Path { return below(path, fieldpath.PathElement{Index: &i}) }
	for _, gap := range gaps(len(before), len(after), func(i, j int) bool { return equal(before[i], after[j]) }) {
		i, j := gap.a0, gap.b0
		for ; i < gap.a1 && j < gap.b1; i, j = i+1, j+1 {
			w.value(place(j), before[i], after[j], at(desired, j))
		}
		for ; i < gap.a1; i++ {
			if before[i] != nil {
				w.emit(Field{Type: compare.Removed, Before: before[i]}, place(i))
			}
		}
		for ; j < gap.b1; j++ {
			w.value(place(j), nil, after[j], at(desired, j))
		}
	}
}

// equal compares JSON data; a number is one however it was decoded.
func equal(a, b any) bool {
	return value.Equals(value.NewValueInterface(a), value.NewValueInterface(b))
}
