// Package compare tells, field by field and by the schema of its kind, in what
// two states of an object differ. Plans, drifts, explanations and saved plans
// speak of these fields. It makes no requests.
package compare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"deployer/apply/fields"
	"deployer/apply/ownership"
	"deployer/internal/kube"
)

// ChangeType is how a field differs between two states of an object.
type ChangeType string

// The types.
const (
	Added     ChangeType = "added"
	Removed   ChangeType = "removed"
	Changed   ChangeType = "changed"
	Reordered ChangeType = "reordered" // a list whose items, told apart by their keys, are the same in another order
)

// A FieldChange is one field in which two states of an object differ. What is added
// or removed as a whole, such as a container, is one change; a list or a map
// that its schema calls atomic is one field.
type FieldChange struct {
	Path fieldpath.Path
	Type ChangeType
	// Before and After are the values, plain JSON data which is not to be changed;
	// nil where the field is absent.
	Before, After any
	// Declared reports whether the desired object has the field. What it doesn't have
	// is a default or comes from an admission webhook. It is true when the desired
	// object isn't known.
	Declared bool
	Owners   []ownership.FieldManager // who owns the field, or something in it, in the state before
	// Revision is the latest one that declared the field, of one that is removed;
	// 0 when none that is stored did.
	Revision int

	leaves []FieldChange
}

// String names the field.
func (c FieldChange) String() string { return fields.String(c.Path) }

// Leaves splits a change into those of single values and of lists without keys.
func (c FieldChange) Leaves() []FieldChange {
	if len(c.leaves) == 0 {
		return []FieldChange{c}
	}
	return c.leaves
}

// States are two states of one object, and what is known of it.
type States struct {
	Before, After *unstructured.Unstructured
	// Desired is the object as it is applied; nil when it isn't known.
	Desired *unstructured.Unstructured
	// Managed is the managedFields of the state before.
	Managed []ownership.Entry
	// AfterIsManifest says that After is as a chart states it and not as a server returns it: a
	// missing field isn't a removed one, and quantities may have another notation.
	AfterIsManifest bool
}

// Fields lists the fields in which two states of an object differ, by the schema
// of its kind and in the order of its lists. What servers, controllers and kubectl
// keep for themselves is left out. See kube.IsBookkeeping.
func Fields(conv managedfields.TypeConverter, s States) ([]FieldChange, error) {
	before, err := Typed(conv, s.Before)
	if err != nil {
		return nil, err
	}
	after, err := Typed(conv, s.After)
	if err != nil {
		return nil, err
	}
	diff, err := before.Compare(after)
	if err != nil {
		return nil, err
	}
	return s.Fields(diff), nil
}

// Typed makes a typed value of an object as the server has it, or as it will be
// sent. Lists may have items twice: Helm 3 has made such objects.
func Typed(conv managedfields.TypeConverter, obj *unstructured.Unstructured) (*typed.TypedValue, error) {
	v, err := conv.ObjectToTyped(obj, typed.AllowDuplicates)
	if err != nil {
		return nil, fmt.Errorf("reading it by its schema: %w", err)
	}
	return v, nil
}

// Untyped is the reverse of Typed. The object shares nothing with the value.
func Untyped(conv managedfields.TypeConverter, v *typed.TypedValue) (*unstructured.Unstructured, error) {
	obj, err := conv.TypedToObject(v)
	if err != nil {
		return nil, err
	}
	return obj.(*unstructured.Unstructured).DeepCopy(), nil
}

// Fields is the function Fields for states that have been compared already.
func (s States) Fields(diff *typed.Comparison) []FieldChange {
	var out []FieldChange
	add := func(path fieldpath.Path, how ChangeType, below *fieldpath.Set) {
		if c, ok := s.change(path, how); ok {
			c.leaves = s.leaves(c, below)
			out = append(out, c)
		}
	}
	twice := diff.Added.Intersection(diff.Removed) // an item that was there several times and isn't any more, or the other way round
	for path := range diff.Modified.Union(twice).All() {
		add(path.Copy(), Changed, nil)
	}
	addTopmost := func(set *fieldpath.Set, how ChangeType) {
		for _, path := range fields.Topmost(set) {
			// The fields of a value of another type are in diff.Modified too.
			if !twice.Has(path) && !fields.Covers(diff.Modified, path[:len(path)-1]) {
				add(path, how, set)
			}
		}
	}
	addTopmost(diff.Added, Added)
	if !s.AfterIsManifest {
		addTopmost(diff.Removed, Removed)
		out = append(out, s.reordered(diff)...)
	}
	slices.SortStableFunc(out, func(a, b FieldChange) int { return s.comparePaths(a.Path, b.Path) })
	return out
}

// change returns the change of one field; false when it is bookkeeping. Null counts as
// absent.
func (s States) change(path fieldpath.Path, how ChangeType) (FieldChange, bool) {
	c := FieldChange{Path: path, Type: how, Declared: true}
	if how != Added {
		c.Before = content(s.Before, path)
	}
	if how != Removed {
		c.After = content(s.After, path)
	}
	switch {
	case c.Before == nil && c.After == nil:
		return c, false
	case c.Before == nil:
		c.Type = Added
	case c.After == nil:
		c.Type = Removed
	}
	if s.isBookkeeping(&c) || s.AfterIsManifest && (c.Type == Removed || c.Type == Changed && SameQuantity(fields.Names(path), c.Before, c.After)) {
		return c, false
	}
	if s.Desired != nil {
		v, ok := fields.Value(s.Desired.Object, path)
		c.Declared = ok && v != nil
	}
	c.Owners = ownership.OwnersOf(s.Managed, path)
	return c, true
}

// content returns the value at a path. For a list item that exists several times it
// returns all of them.
func content(obj *unstructured.Unstructured, path fieldpath.Path) any {
	v, ok := fields.Value(obj.Object, path)
	last := len(path) - 1
	if !ok || path[last].FieldName != nil {
		return v
	}
	list, _ := fields.Value(obj.Object, path[:last])
	items, _ := list.([]any)
	all := slices.DeleteFunc(slices.Clone(items), func(item any) bool { return fields.Index([]any{item}, path[last]) < 0 })
	if len(all) > 1 {
		return all
	}
	return v
}

// isBookkeeping reports whether a change is only bookkeeping, and removes bookkeeping
// from its values. A status that the desired object declares isn't bookkeeping.
func (s States) isBookkeeping(c *FieldChange) bool {
	names := fields.Names(c.Path)
	if names[0] == "status" && s.Desired != nil && s.Desired.Object["status"] != nil {
		return false
	}
	if !slices.Equal(names, []string{"metadata", "annotations"}) {
		return kube.IsBookkeeping(names)
	}
	left, isMap := 0, false
	for _, v := range []*any{&c.Before, &c.After} {
		if m, ok := (*v).(map[string]any); ok {
			m = maps.Clone(m)
			maps.DeleteFunc(m, func(key string, _ any) bool { return kube.IsBookkeeping([]string{"metadata", "annotations", key}) })
			*v, left, isMap = m, left+len(m), true
		}
	}
	return isMap && left == 0
}

// leaves are the changes below one; none when it is a single value itself. set
// has all that was added or removed with it.
func (s States) leaves(c FieldChange, set *fieldpath.Set) []FieldChange {
	var out []FieldChange
	if set != nil {
		for rest := range fields.WithPrefix(set, c.Path).Leaves().All() {
			if leaf, ok := s.change(slices.Concat(c.Path, rest), c.Type); ok {
				out = append(out, s.splitMap(leaf)...)
			}
		}
	}
	if len(out) == 0 {
		out = s.splitMap(c)
	}
	if len(out) == 1 && len(out[0].Path) == len(c.Path) {
		return nil
	}
	return out
}

// splitMap splits the change of an atomic map.
func (s States) splitMap(c FieldChange) []FieldChange {
	before, isMap := c.Before.(map[string]any)
	after, isMapToo := c.After.(map[string]any)
	if !isMap && c.Type != Added || !isMapToo && c.Type != Removed || len(before)+len(after) == 0 || c.Type == Reordered {
		return []FieldChange{c}
	}
	names := map[string]any{}
	maps.Copy(names, before)
	maps.Copy(names, after)
	var out []FieldChange
	for _, name := range slices.Sorted(maps.Keys(names)) {
		path := append(slices.Clone(c.Path), fieldpath.FieldNameElement(name))
		old, had := before[name]
		now, has := after[name]
		how := Changed
		switch {
		case !has && s.AfterIsManifest || had && has && value.Equals(value.NewValueInterface(old), value.NewValueInterface(now)):
			continue
		case !had:
			how = Added
		case !has:
			how = Removed
		}
		if leaf, ok := s.change(path, how); ok {
			out = append(out, s.splitMap(leaf)...)
		}
	}
	return out
}

// comparePaths orders fields by their names, and items of lists as in the list before, then
// as in the list after.
func (s States) comparePaths(a, b fieldpath.Path) int {
	for i := range min(len(a), len(b)) {
		switch {
		case a[i].Equals(b[i]):
			continue
		case a[i].FieldName != nil || b[i].FieldName != nil:
			return a[i].Compare(b[i])
		}
		return cmp.Compare(s.listPosition(a[:i+1]), s.listPosition(b[:i+1]))
	}
	return cmp.Compare(len(a), len(b))
}

// listPosition is the place of an item in its list.
func (s States) listPosition(path fieldpath.Path) int {
	last := len(path) - 1
	n := 0
	for _, obj := range []*unstructured.Unstructured{s.Before, s.After} {
		list, _ := fields.Value(obj.Object, path[:last])
		items, _ := list.([]any)
		if i := fields.Index(items, path[last]); i >= 0 {
			return n + i
		}
		n += len(items)
	}
	return n
}
