package provenance

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"deployer/apply/compare"
	"deployer/apply/fields"
	"deployer/apply/ownership"
)

// Restoration is one object being given back.
type Restoration struct {
	from *Provenance
	last *unstructured.Unstructured // its manifest in the last revision that had it; empty when unknown
	live *unstructured.Unstructured

	Becomes *unstructured.Unstructured
	Stays   []string // what can't be restored, and why
	entries []ownership.Entry
	ours    *fieldpath.Set // the fields of our entries
	others  *fieldpath.Set // those of all others
}

// NewRestoration begins to give an object back. last is its manifest in the last revision that had it;
// nil when that is unknown. It fails if the managedFields of the live object can't be parsed.
func NewRestoration(from *Provenance, live, last *unstructured.Unstructured) (*Restoration, error) {
	if last == nil {
		last = &unstructured.Unstructured{}
	}
	r := &Restoration{from: from, last: last, live: live, ours: fieldpath.NewSet(), others: fieldpath.NewSet()}
	var err error
	if r.entries, err = ownership.Parse(live.GetManagedFields()); err != nil {
		return nil, err
	}
	for _, e := range r.entries {
		if e.IsOurs() {
			r.ours = r.ours.Union(e.Set)
		} else {
			r.others = r.others.Union(e.Set)
		}
	}
	return r, nil
}

// Compute computes the restored object.
func (r *Restoration) Compute(conv managedfields.TypeConverter) error {
	live, err := compare.Typed(conv, compare.WithoutManagedFields(r.live))
	if err != nil {
		return err
	}
	if live, err = r.withoutAdded(conv, live); err == nil {
		live, err = r.withFormer(conv, live)
	}
	if err != nil {
		return err
	}
	if r.Becomes, err = compare.Untyped(conv, live); err != nil {
		return err
	}
	restoreOwnershipMetadata(r.Becomes, r.from.Adopted.Prior.OwnershipMetadata)
	return nil
}

// OnlyOwnershipMetadata restores only the ownership metadata and records why the other fields stay.
func (r *Restoration) OnlyOwnershipMetadata(why error) {
	r.Becomes = r.live.DeepCopy()
	restoreOwnershipMetadata(r.Becomes, r.from.Adopted.Prior.OwnershipMetadata)
	r.Stays = []string{"its fields stay as this release left them: " + why.Error()}
}

// withoutAdded removes what we added, as the API server would if we applied an object
// without it.
func (r *Restoration) withoutAdded(conv managedfields.TypeConverter, live *typed.TypedValue) (*typed.TypedValue, error) {
	added, err := r.from.Adopted.Prior.added()
	if err != nil || added.Empty() {
		return live, err
	}
	entries := slices.DeleteFunc(slices.Clone(r.entries), ownership.Entry.IsOurs)
	all, err := live.ToFieldSet()
	if err != nil {
		return nil, err
	}
	// What we didn't add gets an owner: since the adoption some of it has none, and an apply
	// removes a whole map with the last of its owned entries.
	rest := all.Leaves().RecursiveDifference(added)
	applied := func(manager string, set *fieldpath.Set) ownership.Entry {
		by := ownership.FieldManager{Manager: manager, Operation: metav1.ManagedFieldsOperationApply}
		return ownership.Entry{FieldManager: by, Set: set}
	}
	entries = append(entries, applied(ownership.Manager, r.ours.Intersection(added)), applied("rest", rest))
	nothing := &unstructured.Unstructured{Object: map[string]any{"apiVersion": r.live.GetAPIVersion(), "kind": r.live.GetKind()}}
	nothing.SetName(r.live.GetName())
	nothing.SetNamespace(r.live.GetNamespace())
	desired, err := compare.Typed(conv, nothing)
	if err != nil {
		return nil, err
	}
	return ownership.SimulateApply(live, desired, entries)
}

// withFormer restores the former values of fields that are still as we wrote them.
func (r *Restoration) withFormer(conv managedfields.TypeConverter, live *typed.TypedValue) (*typed.TypedValue, error) {
	values, err := r.from.Adopted.Prior.Object()
	if err != nil || values == nil {
		return live, err
	}
	if values.GetAPIVersion() != r.live.GetAPIVersion() {
		r.Stays = append(r.Stays, "its former state is recorded in "+values.GetAPIVersion()+", which the cluster no longer serves")
		return live, nil
	}
	former, err := compare.Typed(conv, values)
	if err != nil {
		return nil, err
	}
	set, err := former.ToFieldSet()
	if err != nil {
		return nil, err
	}
	drop, server := fieldpath.NewSet(), ownership.Unownable()
	for path := range set.Leaves().All() {
		switch {
		case len(path) == 1 && (fields.IsField(path[0], "apiVersion") || fields.IsField(path[0], "kind")):
		case isKey(path):
			if item := path[:len(path)-1]; fields.Has(r.last.Object, item) && !fields.Has(r.live.Object, item) {
				drop.Insert(item) // somebody else has removed it
			}
		case server.Has(path):
			drop.Insert(path) // earlier versions have recorded metadata.generation
		case r.asWritten(path):
		default:
			drop.Insert(path)
			now, ok := fields.Value(r.live.Object, path)
			if was, had := fields.Value(values.Object, path); ok && (!had || !fields.Equal(now, was)) {
				r.Stays = append(r.Stays, fields.String(path)+" has been changed since")
			}
		}
	}
	if !drop.Empty() {
		former = former.RemoveItems(drop)
	}
	return live.Merge(former)
}

// isKey reports whether a path ends at a key field of a list item.
func isKey(path fieldpath.Path) bool {
	last := len(path) - 1
	return last > 0 && path[last-1].Key != nil &&
		slices.ContainsFunc(*path[last-1].Key, func(f value.Field) bool { return fields.IsField(path[last], f.Name) })
}

// asWritten reports whether a field that we overwrote is still as we wrote it: a change
// by somebody else would remove it from our managed fields. A missing field counts if our
// last revision doesn't state it, because then we removed it.
func (r *Restoration) asWritten(path fieldpath.Path) bool {
	now, there := fields.Value(r.live.Object, path)
	stated, has := fields.Value(r.last.Object, path)
	switch {
	case !there:
		return !has
	case len(r.entries) == 0:
		return has && fields.Equal(now, stated) // stored without owners
	}
	return fields.Owns(r.ours, path) && !r.others.Has(path)
}

// ManagedFields returns the managedFields of the restored object: the entries of others as they
// are, and for the former owners the fields that still exist and that nobody else owns.
func (r *Restoration) ManagedFields() ([]metav1.ManagedFieldsEntry, error) {
	list := slices.DeleteFunc(slices.Clone(r.entries), ownership.Entry.IsOurs)
	former, err := ownership.Parse(r.from.Adopted.Prior.ManagedFields)
	if err != nil {
		return nil, err
	}
	for _, e := range former {
		if e.Subresource != "" {
			continue
		}
		again := fields.Where(e.Set, func(path fieldpath.Path) bool {
			return fields.Has(r.Becomes.Object, path) && !r.others.Has(path)
		})
		if again.Empty() {
			continue
		}
		i := slices.IndexFunc(list, func(o ownership.Entry) bool {
			return o.Manager == e.Manager && o.Operation == e.Operation && o.Subresource == "" && o.APIVersion == e.APIVersion
		})
		if i < 0 {
			list = append(list, e.With(again))
		} else {
			list[i] = list[i].With(list[i].Set.Union(again))
		}
	}
	out, err := ownership.Encode(list)
	if len(out) == 0 {
		out = []metav1.ManagedFieldsEntry{{}} // an empty list would be no change
	}
	return out, err
}

// ManagedFieldsAfter returns the managedFields that a restored object gets once it is written. Others
// may have written it since, so they follow from the object as it is now.
func (r *Restoration) ManagedFieldsAfter(now *unstructured.Unstructured) ([]metav1.ManagedFieldsEntry, error) {
	again, err := NewRestoration(r.from, now, r.last)
	if err != nil {
		return nil, err
	}
	again.Becomes = now
	return again.ManagedFields()
}

// StillOurs reports whether an object has entries of ours that it didn't have before it
// was adopted.
func (r *Restoration) StillOurs(obj *unstructured.Unstructured) bool {
	return obj != nil && slices.ContainsFunc(obj.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return ownership.IsOurs(e) && !slices.ContainsFunc(r.from.Adopted.Prior.ManagedFields, func(o metav1.ManagedFieldsEntry) bool {
			return o.Manager == e.Manager && o.Operation == e.Operation && o.Subresource == ""
		})
	})
}
