package compare

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"deployer/apply/fields"
)

// reordered finds the lists that differ only in the order of their items, which a typed
// comparison ignores. Which lists have keys is known from the items that have owners.
func (s States) reordered(diff *typed.Comparison) []FieldChange {
	owned := fieldpath.NewSet()
	for _, e := range s.Managed {
		owned = owned.Union(e.Set)
	}
	found := &reorder{States: s, differs: diff.Added.Union(diff.Removed).Union(diff.Modified)}
	found.visit(nil, owned, found.differs, s.Before.Object, s.After.Object)
	return found.out
}

type reorder struct {
	States
	differs *fieldpath.Set
	out     []FieldChange
}

// visit looks into what both states have at a path. owned and differs are what is
// owned and what differs there.
func (r *reorder) visit(path fieldpath.Path, owned, differs *fieldpath.Set, before, after any) {
	old, isList := before.([]any)
	now, isListToo := after.([]any)
	var items []fieldpath.PathElement
	item := func(e fieldpath.PathElement) {
		if e.FieldName == nil && !slices.ContainsFunc(items, e.Equals) {
			items = append(items, e)
		}
	}
	owned.Members.Iterate(item)
	owned.Children.Iterate(func(e fieldpath.PathElement) {
		item(e)
		x, had := fields.Value(before, fieldpath.Path{e})
		y, has := fields.Value(after, fieldpath.Path{e})
		if had && has {
			r.visit(append(path, e), owned.WithPrefix(e), differs.WithPrefix(e), x, y)
		}
	})
	if !isList || !isListToo || len(items) < 2 || len(items) != len(old) || len(old) != len(now) || !differs.Empty() {
		return
	}
	slices.SortFunc(items, func(a, b fieldpath.PathElement) int { return fields.Index(old, a) - fields.Index(old, b) })
	if slices.IsSortedFunc(items, func(a, b fieldpath.PathElement) int { return fields.Index(now, a) - fields.Index(now, b) }) {
		return
	}
	if c, ok := r.change(slices.Clone(path), Reordered); ok {
		c.Before, c.After = itemKeys(items, old), itemKeys(items, now)
		r.out = append(r.out, c)
	}
}

// itemKeys are the keys of the items of a list in its order: name="web".
func itemKeys(items []fieldpath.PathElement, list []any) []any {
	out := make([]any, len(list))
	for _, e := range items {
		if i := fields.Index(list, e); i >= 0 {
			text := e.String()
			out[i] = text[1 : len(text)-1]
		}
	}
	return out
}
