package predict

import (
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"deployer/apply/builtin"
	"deployer/apply/compare"
	"deployer/apply/fields"
	"deployer/apply/ownership"
)

// A Conflict is a field that another manager has set to another value than the chart's.
type Conflict struct {
	ownership.Conflict
	// Repeated says that a controller has changed the field since our last apply, and that an
	// earlier release had already set the chart's value.
	Repeated bool
}

// Conflicts finds the fields that other managers have set to other values. It fails if the
// desired object doesn't fit its schema.
func (p *Prediction) Conflicts() ([]Conflict, error) {
	desired, err := compare.Typed(p.Live.Converter, p.Desired)
	if err != nil {
		return nil, err
	}
	all, err := ownership.Conflicts(p.Live.Value, desired, p.comparable(p.Live.Entries))
	if err != nil {
		return nil, err
	}
	var out []Conflict
	for _, c := range all {
		before, has := fields.Value(p.Live.Object.Object, c.Path)
		after, stated := fields.Value(p.Desired.Object, c.Path)
		switch {
		case has == stated && (fields.Equal(before, after) || compare.SameQuantity(fields.Names(c.Path), before, after)): // but not to the schema: 1 and 1.0, 1 and 1000m
		case c.By.Class() == ownership.Ambiguous && p.hasDeclaredValue(c.Path, before): // nobody changed it: the chart's own value of an earlier revision
		default:
			out = append(out, Conflict{Conflict: c, Repeated: p.isRepeated(c, after)})
		}
	}
	return out, nil
}

func (p *Prediction) isRepeated(c ownership.Conflict, wanted any) bool {
	ours := ownership.ApplyEntry(p.Live.Entries)
	return ours != nil && c.By.Class() == ownership.Controller && !c.By.Time.Before(ours.Time) && p.hasDeclaredValue(c.Path, wanted)
}

// A Collision is a list item, a field of one, or a member of a union that the chart doesn't
// state and that can't coexist with what the chart states.
type Collision struct {
	Theirs         fieldpath.Path
	Ours           fieldpath.Path           // the chart's item or member; nil if the chart has dropped its own
	Relinquishable fieldpath.Path           // what is left out if Theirs stays: our item, or its colliding field
	Why            string                   // "has the name http, as"
	Owners         []ownership.FieldManager // of Theirs
}

// A listItem is an item of a keyed list in the predicted object.
type listItem struct {
	path   fieldpath.Path
	now    map[string]any
	stated map[string]any // by the chart; nil when it doesn't have the item
}

// findCollisions finds the collisions in the predicted object.
func (p *Prediction) findCollisions() *collisionFinder {
	f := &collisionFinder{p: p}
	v, err := compare.Typed(p.Live.Converter, p.Predicted)
	if err == nil && v.Schema() != nil { // otherwise the server will say what is wrong with it
		f.schema = v.Schema()
		f.walk(nil, p.Predicted.Object, v.TypeRef())
	}
	return f
}

// A collisionFinder looks for collisions in an object by its schema.
type collisionFinder struct {
	p       *Prediction
	schema  *schema.Schema
	open    []Collision // about which the policy for conflicts decides
	settled []Collision // with former members of unions, which go in any case
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
			if builtin.Is(ref, rule.in) {
				var items []listItem
				for _, list := range rule.lists {
					items = append(items, f.items(strings.Split(list, "."), path, v, atom.Map)...)
				}
				f.check(rule, items)
			}
		}
		for _, u := range builtin.UnionsOf(ref) {
			if u.List != "" {
				f.checkItems(u, path, v, atom.Map)
			} else {
				f.checkUnion(u, path, v)
			}
		}
		for name, child := range v {
			if field, ok := atom.Map.FindField(name); ok {
				f.walk(extended(path, fieldpath.FieldNameElement(name)), child, field.Type)
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

// items returns the items of a list; with more names, those of the lists in its items.
func (f *collisionFinder) items(names []string, path fieldpath.Path, in map[string]any, t *schema.Map) []listItem {
	field, ok := t.FindField(names[0])
	if !ok {
		return nil
	}
	atom, ok := f.schema.Resolve(field.Type)
	if !ok || atom.List == nil || len(atom.List.Keys) == 0 {
		return nil
	}
	element, _ := f.schema.Resolve(atom.List.ElementType)
	path = extended(path, fieldpath.FieldNameElement(names[0]))
	var out []listItem
	all, _ := in[names[0]].([]any)
	for _, item := range all {
		m, _ := item.(map[string]any)
		e, ok := f.keyOf(item, atom.List)
		switch {
		case !ok:
		case len(names) > 1:
			out = append(out, f.items(names[1:], extended(path, e), m, element.Map)...)
		default:
			at := extended(path, e)
			out = append(out, listItem{path: at, now: m, stated: mapAt(f.p.Desired.Object, at)})
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
	return fieldpath.KeyElement(key...), true
}

// check compares each item that the chart states with all others.
func (f *collisionFinder) check(rule uniqueRule, items []listItem) {
	for _, ours := range items {
		for _, theirs := range items {
			inOneList := ours.path[:len(ours.path)-1].Equals(theirs.path[:len(theirs.path)-1])
			if ours.stated == nil || ours.path.Equals(theirs.path) || rule.across && inOneList {
				continue
			}
			why := rule.clash(theirs.now, ours.stated)
			if at, ok := theirs.undeclaredPart(rule.field); why != "" && ok {
				f.open = append(f.open, Collision{Theirs: at, Ours: ours.path, Relinquishable: f.relinquishable(ours, rule.field), Why: why, Owners: f.p.ownersOf(at)})
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
	return extended(i.path, fieldpath.FieldNameElement(field)), true
}

// relinquishable returns the path to leave out if the other item stays: the colliding field if the
// item is already live, otherwise the whole item.
func (f *collisionFinder) relinquishable(ours listItem, field string) fieldpath.Path {
	at := extended(ours.path, fieldpath.FieldNameElement(field))
	if field == "" || !f.p.Live.Fields.Has(ours.path) || !fields.Has(f.p.Desired.Object, at) {
		return ours.path
	}
	return at
}

// ownersOf returns the owners of another manager's item.
func (p *Prediction) ownersOf(path fieldpath.Path) []ownership.FieldManager {
	all := ownership.OwnersOf(p.Live.Entries, path)
	others := slices.DeleteFunc(slices.Clone(all), func(f ownership.FieldManager) bool { return f.Manager == ownership.Manager })
	switch {
	case len(others) > 0:
		return others
	case len(all) > 0:
		return all
	}
	return []ownership.FieldManager{{Manager: "unknown"}} // as the server calls a manager without a name
}

// RemoveTheirs takes another manager's item out of what is predicted, from the next Compute on.
func (p *Prediction) RemoveTheirs(theirs fieldpath.Path) { p.removedItems.Insert(theirs) }

// removeCollidingItems takes what collides with the chart out of the predicted object.
func (p *Prediction) removeCollidingItems() bool {
	found := false
	for path := range p.removedItems.All() {
		if fields.Remove(p.Predicted.Object, path) {
			found = true
			removeEmpty(p.Predicted.Object, path[:len(path)-1])
		}
	}
	return found
}
