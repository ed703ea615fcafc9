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
	p.relinquished = p.relinquished.Union(fields.Where(p.Live.Fields, func(below fieldpath.Path) bool {
		return len(below) > len(path) && path.Equals(below[:len(path)])
	}))
}

// RelinquishItem leaves an item out, and the list when nothing else is in it.
func (p *Prediction) RelinquishItem(path fieldpath.Path) {
	p.RelinquishField(path)
	removeEmpty(p.Desired.Object, path[:len(path)-1])
}

// removeEmpty takes a list out of obj when nothing is in it.
func removeEmpty(obj map[string]any, path fieldpath.Path) {
	list, _ := fields.Value(obj, path)
	if items, isList := list.([]any); isList && len(items) == 0 {
		fields.Remove(obj, path)
	}
}

// RelinquishDefaults leaves fields, of which the chart may state none, to their owners.
func (p *Prediction) RelinquishDefaults(keep *fieldpath.Set) {
	p.relinquished = p.relinquished.Union(keep)
}

// RelinquishClusterFilled keeps ownership of the fields that the cluster fills from being migrated to us: the apply
// would then remove them. A caBundle or rules that a revision declared were not filled in. hasStatus says that the kind
// has a status of its own.
func (p *Prediction) RelinquishClusterFilled(hasStatus bool) {
	aggregated, bundled := kube.IsAggregated(p.Desired), manifest.HasCABundle(p.Desired.GroupVersionKind().GroupKind())
	p.relinquished = p.relinquished.Union(fields.Where(p.Live.Fields, func(path fieldpath.Path) bool {
		top, last := path[0], path[len(path)-1]
		return aggregated && fields.IsField(top, "rules") && p.LastDeclaredIn(path) == 0 || hasStatus && fields.IsField(top, "status") ||
			bundled && fields.IsField(last, "caBundle") && p.LastDeclaredIn(path) == 0 || fields.IsField(last, kube.RestartedAtAnnotation)
	}))
}

// RelinquishMetadata leaves labels, annotations and other metadata of which the chart states nothing as they are.
func (p *Prediction) RelinquishMetadata() {
	p.relinquished = p.relinquished.Union(fields.Where(p.Live.Fields, func(path fieldpath.Path) bool { return fields.IsField(path[0], "metadata") }))
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
	if !p.Migrated.Changed {
		return fieldpath.NewSet()
	}
	return fields.Where(diff.Modified.Union(diff.Removed), func(path fieldpath.Path) bool {
		return !p.isDeclared(path) && p.Migrated.Ours.Has(path) && !p.reverted(path) &&
			!fields.Covers(diff.Removed, path[:len(path)-1]) && !isItemOrMapKey(p.Live.Value, path)
	})
}

// reverted reports whether a field is removed because somebody set it by hand.
func (p *Prediction) reverted(path fieldpath.Path) bool {
	return p.terms.RevertManual && slices.ContainsFunc(p.Live.Entries, func(e ownership.Entry) bool { return e.IsManual() && e.Set.Has(path) })
}

// UndeclaredDefaults returns the fields of structures that would become ours although
// nobody declared them: defaults. See ChangedDefaults.
func (p *Prediction) UndeclaredDefaults() *fieldpath.Set {
	return fields.Where(p.Migrated.Ours, func(path fieldpath.Path) bool {
		for i := range path {
			if at := path[:i+1]; !p.isDeclared(at) && isItemOrMapKey(p.Live.Value, at) {
				return false
			}
		}
		return !p.isDeclared(path) && !p.reverted(path)
	})
}
