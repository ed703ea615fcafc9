package apply

import (
	"context"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"deployer/apply/compare"
	"deployer/apply/fields"
	"deployer/apply/ownership"
	"deployer/internal/hide"
)

// A collision is a list item, or a field of one, that the chart doesn't state and that
// can't coexist with an item that the chart states.
type collision struct {
	theirs fieldpath.Path
	ours   fieldpath.Path // the chart's item
	held   fieldpath.Path // what is left out if theirs stays: our item, or its colliding field
	why    string         // "has the name http, as"
}

// A listItem is an item of a keyed list in the predicted object.
type listItem struct {
	list   string
	path   fieldpath.Path
	now    map[string]any
	stated map[string]any // by the chart; nil when it doesn't have the item
}

// collisions finds the collisions in the predicted object.
func (c *comparison) collisions() []collision {
	v, err := compare.Typed(c.conv, c.predicted)
	if err != nil || v.Schema() == nil {
		return nil // the server will say what is wrong with it
	}
	f := &collisionFinder{c: c, schema: v.Schema()}
	f.walk(nil, c.predicted.Object, v.TypeRef())
	return f.found
}

// A collisionFinder looks for collisions in an object by its schema.
type collisionFinder struct {
	c      *comparison
	schema *schema.Schema
	found  []collision
}

func (f *collisionFinder) walk(path fieldpath.Path, v any, ref schema.TypeRef) {
	atom, ok := f.schema.Resolve(ref)
	if !ok {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		if atom.Map == nil {
			return
		}
		for _, rule := range uniqueRules {
			if ref.NamedType != nil && *ref.NamedType == rule.in {
				f.check(rule, f.items(rule, path, v, atom.Map))
			}
		}
		for name, child := range v {
			if field, ok := atom.Map.FindField(name); ok {
				f.walk(extended(path, fieldpath.PathElement{FieldName: &name}), child, field.Type)
			}
		}
	case []any:
		if atom.List == nil || len(atom.List.Keys) == 0 {
			return
		}
		for _, item := range v {
			if e, ok := f.keyOf(item, atom.List); ok {
				f.walk(extended(path, e), item, atom.List.ElementType)
			}
		}
	}
}

func extended(path fieldpath.Path, e fieldpath.PathElement) fieldpath.Path {
	return append(path[:len(path):len(path)], e)
}

// items returns the items of the lists that a rule is about.
func (f *collisionFinder) items(rule uniqueRule, path fieldpath.Path, in map[string]any, t *schema.Map) []listItem {
	var out []listItem
	for _, list := range rule.lists {
		out = append(out, f.itemsAt(list, strings.Split(list, "."), path, in, t)...)
	}
	return out
}

func (f *collisionFinder) itemsAt(list string, names []string, path fieldpath.Path, in map[string]any, t *schema.Map) []listItem {
	field, ok := t.FindField(names[0])
	if !ok {
		return nil
	}
	atom, ok := f.schema.Resolve(field.Type)
	if !ok || atom.List == nil || len(atom.List.Keys) == 0 {
		return nil
	}
	element, _ := f.schema.Resolve(atom.List.ElementType)
	path = extended(path, fieldpath.PathElement{FieldName: &names[0]})
	var out []listItem
	all, _ := in[names[0]].([]any)
	for _, item := range all {
		m, _ := item.(map[string]any)
		e, ok := f.keyOf(item, atom.List)
		switch {
		case !ok:
		case len(names) > 1:
			out = append(out, f.itemsAt(list, names[1:], extended(path, e), m, element.Map)...)
		default:
			at := extended(path, e)
			stated, _ := fields.Value(f.c.desired.Object, at)
			s, _ := stated.(map[string]any)
			out = append(out, listItem{list: list, path: at, now: m, stated: s})
		}
	}
	return out
}

// keyOf names an item by its keys, or their defaults.
func (f *collisionFinder) keyOf(item any, t *schema.List) (fieldpath.PathElement, bool) {
	m, ok := item.(map[string]any)
	if !ok {
		return fieldpath.PathElement{}, false
	}
	element, _ := f.schema.Resolve(t.ElementType)
	var key value.FieldList
	for _, name := range t.Keys {
		v, has := m[name]
		if !has && element.Map != nil {
			field, _ := element.Map.FindField(name)
			v = field.Default
		}
		key = append(key, value.Field{Name: name, Value: value.NewValueInterface(v)})
	}
	key.Sort()
	return fieldpath.PathElement{Key: &key}, true
}

// check compares each item that the chart states with all others.
func (f *collisionFinder) check(rule uniqueRule, items []listItem) {
	for _, ours := range items {
		for _, theirs := range items {
			if ours.stated == nil || ours.path.Equals(theirs.path) || rule.across && ours.list == theirs.list {
				continue
			}
			why := rule.clash(theirs.now, ours.stated)
			if at, ok := theirs.undeclaredPart(rule.field); why != "" && ok {
				f.found = append(f.found, collision{theirs: at, ours: ours.path, held: f.held(ours, rule.field), why: why})
			}
		}
	}
}

// undeclaredPart returns what the chart doesn't state of an item: the whole item, or the
// colliding field. It is false when the chart states both: then the chart is wrong, and
// the server rejects it.
func (i listItem) undeclaredPart(field string) (fieldpath.Path, bool) {
	if i.stated == nil {
		return i.path, true
	}
	if field == "" || i.stated[field] != nil || i.now[field] == nil {
		return nil, false
	}
	return extended(i.path, fieldpath.PathElement{FieldName: &field}), true
}

// held returns the path to leave out if the other item stays: the colliding field if the
// item is already live, otherwise the whole item.
func (f *collisionFinder) held(ours listItem, field string) fieldpath.Path {
	at := extended(ours.path, fieldpath.PathElement{FieldName: &field})
	if _, stated := fields.Value(f.c.desired.Object, at); field == "" || !f.c.liveSet.Has(ours.path) || !stated {
		return ours.path
	}
	return at
}

// decideCollisions decides about collisions as the policy has it, and returns those that are
// refused.
func (u *updateDecision) decideCollisions(ctx context.Context, policy ConflictPolicy) ([]FieldConflict, error) {
	var refused []FieldConflict
	for range len(uniqueRules) { // leaving an item out may cause another collision
		found := u.comparison.collisions()
		if len(found) == 0 {
			return refused, nil
		}
		var seen []fieldpath.Path
		for _, col := range found {
			if slices.ContainsFunc(seen, col.theirs.Equals) {
				continue // the same two items collide in several ways
			}
			seen = append(seen, col.theirs)
			list := u.conflictsOf(col, policy)
			u.change.Conflicts = append(u.change.Conflicts, list...)
			switch policy {
			case FailOnConflict:
				refused = append(refused, list...)
			case YieldConflicts:
				u.comparison.relinquishItem(col.held)
			default:
				u.comparison.evicted.Insert(col.theirs)
				u.p.warnings.add(u.t.id, u.t.source, "%s, set by %s, is removed: it %s the chart's %s", fields.String(col.theirs), managersOf(list), col.why, fields.String(col.ours))
			}
		}
		if policy == FailOnConflict {
			return refused, nil
		}
		if err := u.predict(ctx); err != nil {
			return nil, err
		}
	}
	return refused, nil
}

// relinquishItem leaves an item out, and the list when nothing else is in it.
func (c *comparison) relinquishItem(path fieldpath.Path) {
	c.relinquishField(path)
	removeEmpty(c.desired.Object, path[:len(path)-1])
}

// removeEmpty takes a list out of obj when nothing is in it.
func removeEmpty(obj map[string]any, path fieldpath.Path) {
	if list, ok := fields.Value(obj, path); ok {
		if items, isList := list.([]any); isList && len(items) == 0 {
			fields.Remove(obj, path)
		}
	}
}

// conflictsOf describes a collision, once for each owner of the other manager's item.
func (u *updateDecision) conflictsOf(col collision, policy ConflictPolicy) []FieldConflict {
	owners := slices.DeleteFunc(slices.Clone(u.comparison.entries), func(e ownership.Entry) bool { return !fields.Owns(e.Set, col.theirs) })
	if others := slices.DeleteFunc(slices.Clone(owners), func(e ownership.Entry) bool { return e.Manager == Manager }); len(others) > 0 {
		owners = others
	}
	if len(owners) == 0 {
		owners = []ownership.Entry{{Manager: "unknown"}} // as the server calls a manager without a name
	}
	var out []FieldConflict
	for _, e := range owners {
		out = append(out, FieldConflict{
			Path: fields.String(col.theirs), Owner: e.Owner(),
			Before: shown(u.live, col.theirs, hide.ConfidentialFields(u.live, u.comparison.desired, u.t.obj)), After: fields.Text(nil, false),
			Outcome: policy.outcome(), CollidesWith: fields.String(col.ours), path: col.theirs,
		})
	}
	return out
}

func managersOf(list []FieldConflict) string {
	var names []string
	for _, f := range list {
		if !slices.Contains(names, f.Manager) {
			names = append(names, f.Manager)
		}
	}
	return strings.Join(names, ", ")
}

// evict takes what collides with the chart out of the predicted object.
func (c *comparison) evict() bool {
	found := false
	c.evicted.Iterate(func(path fieldpath.Path) {
		if !fields.Remove(c.predicted.Object, path) {
			return
		}
		found = true
		parent := path[:len(path)-1]
		removeEmpty(c.predicted.Object, parent)
	})
	return found
}
