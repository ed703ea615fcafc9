package predict

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"deployer/apply/fields"
	"deployer/apply/manifest"
	"deployer/apply/ownership"
	"deployer/internal/kube"
)

// RelinquishField leaves a field to its owner: it is neither applied nor removed.
func (p *Prediction) RelinquishField(path fieldpath.Path) {
	fields.Remove(p.Desired.Object, path)
	p.relinquished.Insert(path)
	p.Live.Fields.Iterate(func(below fieldpath.Path) {
		if len(below) > len(path) && path.Equals(below[:len(path)]) {
			p.relinquished.Insert(below.Copy())
		}
	})
}

// RelinquishItem leaves an item out, and the list when nothing else is in it.
func (p *Prediction) RelinquishItem(path fieldpath.Path) {
	p.RelinquishField(path)
	removeEmpty(p.Desired.Object, path[:len(path)-1])
}

// removeEmpty takes a list out of obj when nothing is in it.
func removeEmpty(obj map[string]any, path fieldpath.Path) {
	if list, ok := fields.Value(obj, path); ok {
		if items, isList := list.([]any); isList && len(items) == 0 {
			fields.Remove(obj, path)
		}
	}
}

// RelinquishDefaults leaves fields, of which the chart may state none, to their owners.
func (p *Prediction) RelinquishDefaults(keep *fieldpath.Set) {
	p.relinquished = p.relinquished.Union(keep)
}

// RelinquishClusterFilled keeps ownership of the fields that the cluster fills from being
// migrated to us: the apply would then remove them. hasStatus says that the kind has a status
// of its own.
func (p *Prediction) RelinquishClusterFilled(hasStatus bool) {
	kind := p.Desired.GroupVersionKind().GroupKind()
	aggregated := kind.Kind == "ClusterRole" && p.Desired.Object["aggregationRule"] != nil
	bundled := manifest.HasCABundle(kind)
	p.Live.Fields.Iterate(func(path fieldpath.Path) {
		top, name := fieldName(path[0]), fieldName(path[len(path)-1])
		switch {
		case aggregated && top == "rules", bundled && name == "caBundle", hasStatus && top == "status", name == kube.RestartedAtAnnotation:
			p.relinquished.Insert(path.Copy())
		}
	})
}

func fieldName(e fieldpath.PathElement) string {
	if e.FieldName == nil {
		return ""
	}
	return *e.FieldName
}

// isItemOrMapKey says that a path is an item of a list or a key of a free map, as
// against a field of a structure.
func isItemOrMapKey(v *typed.TypedValue, path fieldpath.Path) bool {
	ref := v.TypeRef()
	for i, e := range path {
		atom, ok := v.Schema().Resolve(ref)
		if !ok {
			return true
		}
		switch {
		case e.FieldName == nil:
			if i == len(path)-1 || atom.List == nil {
				return true
			}
			ref = atom.List.ElementType
		case atom.Map == nil:
			return true
		default:
			_, named := atom.Map.FindField(*e.FieldName)
			field, known := manifest.FieldType(atom.Map, *e.FieldName)
			if !known || !named && i == len(path)-1 {
				return true
			}
			ref = field
		}
	}
	return false
}

// ChangedDefaults returns the fields that the migration of ownership would change
// although neither the chart nor a stored revision states them. It returns only fields of
// structures: list items and map keys that nobody declared were added under Helm's name.
func (p *Prediction) ChangedDefaults(diff *typed.Comparison) *fieldpath.Set {
	out := fieldpath.NewSet()
	if !p.Migrated.Changed {
		return out
	}
	diff.Modified.Union(diff.Removed).Iterate(func(path fieldpath.Path) {
		if p.IsDeclared(path) || !p.Migrated.Ours.Has(path) || p.reverted(path) {
			return
		}
		if !fields.Covers(diff.Removed, path[:len(path)-1]) && !isItemOrMapKey(p.Live.Value, path) {
			out.Insert(path.Copy())
		}
	})
	return out
}

// reverted reports whether a field is removed because somebody set it by hand.
func (p *Prediction) reverted(path fieldpath.Path) bool {
	return p.terms.RevertManual && slices.ContainsFunc(p.Live.Entries, func(e ownership.Entry) bool { return e.IsManual() && e.Set.Has(path) })
}

// UndeclaredDefaults returns the fields of structures that would become ours although
// nobody declared them: defaults. See ChangedDefaults.
func (p *Prediction) UndeclaredDefaults() *fieldpath.Set {
	out := fieldpath.NewSet()
	p.Migrated.Ours.Iterate(func(path fieldpath.Path) {
		if p.IsDeclared(path) || p.reverted(path) {
			return
		}
		for i := 1; i <= len(path); i++ {
			if at := path[:i]; !p.IsDeclared(at) && isItemOrMapKey(p.Live.Value, at) {
				return
			}
		}
		out.Insert(path.Copy())
	})
	return out
}
