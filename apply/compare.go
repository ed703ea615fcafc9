package apply

import (
	"context"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"deployer/apply/compare"
	"deployer/apply/fields"
	"deployer/apply/ownership"
	"deployer/internal/kube"
)

// A comparison holds the live and the desired object, the owners of their fields, and the
// object predicted for an apply.
type comparison struct {
	conv               managedfields.TypeConverter
	live               *typed.TypedValue // without managedFields
	liveSet            *fieldpath.Set
	entries            []ownership.Entry
	declaredByRevision []declaredFields

	desired    *unstructured.Unstructured
	desiredSet *fieldpath.Set
	relinquish *fieldpath.Set // fields that must not become ours when ownership is migrated
	evicted    *fieldpath.Set // what is removed because it collides with the desired object

	migrated  ownership.Migrated
	predicted *unstructured.Unstructured
}

// declaredFields is what one earlier revision said about an object.
type declaredFields struct {
	revision int
	set      *fieldpath.Set
	obj      map[string]any
}

// A comparer makes of a rendered object what is sent, and compares it with the live one.
type comparer struct {
	a        *Applier
	schemas  *schemas
	history  *releaseHistory
	warnings *warnings
}

// compare begins a comparison; migrateAndPredict completes it.
func (r *comparer) compare(ctx context.Context, t *target, desired, live *unstructured.Unstructured) (*comparison, error) {
	conv, _, err := r.schemas.of(ctx, t.mapping.GVK)
	if err != nil {
		return nil, err
	}
	c := &comparison{conv: conv, desired: desired, relinquish: fieldpath.NewSet(), evicted: fieldpath.NewSet()}
	if c.live, err = compare.Typed(conv, withoutManagedFields(live)); err != nil {
		return nil, err
	}
	if c.liveSet, err = c.live.ToFieldSet(); err != nil {
		return nil, err
	}
	if c.entries, err = ownership.Parse(live.GetManagedFields()); err != nil {
		return nil, err
	}
	c.declaredByRevision = r.declaredFieldsOf(ctx, t, conv, r.history.objects[t.id])
	return c, nil
}

// withoutManagedFields is an object without managedFields.
func withoutManagedFields(obj *unstructured.Unstructured) *unstructured.Unstructured {
	out := shallowCopy(obj)
	out.SetManagedFields(nil)
	return out
}

// declaredFieldsOf returns the fields that stored revisions declared for an object, in
// the API version that is applied. A revision that doesn't fit this version's schema is
// skipped: the kind was a different one then.
func (r *comparer) declaredFieldsOf(ctx context.Context, t *target, conv managedfields.TypeConverter, stored []declaredObject) []declaredFields {
	var out []declaredFields
	var last *unstructured.Unstructured
	for _, s := range stored {
		if last != nil && reflect.DeepEqual(last.Object, s.obj.Object) {
			out = append(out, declaredFields{s.revision, out[len(out)-1].set, out[len(out)-1].obj})
			continue
		}
		obj := shallowCopy(s.obj)
		obj.SetGroupVersionKind(t.mapping.GVK)
		res, err := r.normaliseBySchema(ctx, t, obj, false)
		if err != nil {
			continue
		}
		v, err := compare.Typed(conv, res.Object)
		if err != nil {
			continue
		}
		set, err := ownership.Appliable(v)
		if err != nil {
			continue
		}
		last = s.obj
		out = append(out, declaredFields{s.revision, set, res.Object.Object})
	}
	return out
}

// migrateAndPredict computes the migrated ownership and the predicted object from the
// current desired object and the relinquished fields.
func (c *comparison) migrateAndPredict(adopting, revert bool, served func(string) bool) error {
	desired, err := compare.Typed(c.conv, c.desired)
	if err != nil {
		return err
	}
	if c.desiredSet, err = ownership.Appliable(desired); err != nil {
		return err
	}
	history := fieldpath.NewSet()
	for _, r := range c.declaredByRevision {
		history = history.Union(r.set)
	}
	c.migrated = ownership.Migrate(ownership.Migration{
		APIVersion:   c.desired.GetAPIVersion(),
		Entries:      c.entries,
		Live:         c.liveSet,
		Desired:      c.desiredSet,
		Declared:     history,
		Relinquished: c.relinquish,
		Adopting:     adopting,
		RevertManual: revert,
		Served:       served,
	})
	return c.predict(c.live, desired)
}

// predict computes the result of applying desired to an object.
func (c *comparison) predict(live, desired *typed.TypedValue) error {
	result, err := ownership.SimulateApply(live, desired, c.migrated.Entries)
	if err != nil {
		return err
	}
	obj, err := c.conv.TypedToObject(result)
	if err != nil {
		return err
	}
	c.predicted = obj.(*unstructured.Unstructured).DeepCopy()
	return nil
}

// manualAdditions returns the fields that people have added and that stay as they are, by
// field manager.
func (c *comparison) manualAdditions() map[string][]string {
	out := map[string][]string{}
	for _, e := range c.migrated.Entries {
		if !e.IsManual() {
			continue
		}
		added := fieldpath.NewSet()
		ownership.Content(e.Set).Difference(c.relinquish).Iterate(func(p fieldpath.Path) {
			if c.liveSet.Has(p) && !c.desiredSet.Has(p) && !fields.Within(c.evicted, p) && fields.Under(c.desiredSet, p).Empty() {
				added.Insert(p.Copy())
			}
		})
		for _, p := range fields.Topmost(added) {
			out[e.Manager] = append(out[e.Manager], fields.String(p))
		}
	}
	return out
}

// heldByOthers returns the fields that the chart dropped and that stay because another
// manager owns them too, by field manager.
func (c *comparison) heldByOthers() map[string][]string {
	dropped := fieldpath.NewSet()
	for _, r := range c.declaredByRevision {
		dropped = dropped.Union(r.set)
	}
	dropped = dropped.Intersection(c.liveSet).Difference(c.desiredSet).Difference(c.relinquish)
	out := map[string][]string{}
	for _, e := range c.migrated.Entries {
		if e.Manager == Manager || e.Subresource != "" {
			continue
		}
		for _, p := range fields.Topmost(e.Set.Intersection(dropped)) {
			if fields.Under(c.desiredSet, p).Empty() && !fields.Within(c.evicted, p) {
				out[e.Label()] = append(out[e.Label()], fields.String(p))
			}
		}
	}
	return out
}

// isDeclared reports whether the chart or a stored revision states a field.
func (c *comparison) isDeclared(path fieldpath.Path) bool {
	return c.desiredSet.Has(path) || c.lastDeclaredIn(path) > 0
}

// hasDeclaredValue reports whether a stored revision gave a field this value.
func (c *comparison) hasDeclaredValue(path fieldpath.Path, value any) bool {
	return slices.ContainsFunc(c.declaredByRevision, func(r declaredFields) bool {
		v, ok := fields.Value(r.obj, path)
		return ok && fields.Equal(v, value)
	})
}

// lastDeclaredIn returns the latest stored revision that declares a field; 0 when none does.
func (c *comparison) lastDeclaredIn(path fieldpath.Path) int {
	for i := len(c.declaredByRevision) - 1; i >= 0; i-- {
		if c.declaredByRevision[i].set.Has(path) {
			return c.declaredByRevision[i].revision
		}
	}
	return 0
}

// differences compares the live object with what it will be.
func (c *comparison) differences(after *unstructured.Unstructured) (*typed.Comparison, error) {
	v, err := compare.Typed(c.conv, withoutManagedFields(after))
	if err != nil {
		return nil, err
	}
	return c.live.Compare(v)
}

// fieldsChangedByServer lists the fields of a new object whose applied values the server changes;
// none when the object can't be read by its schema.
func (r *comparer) fieldsChangedByServer(ctx context.Context, t *target, desired, result *unstructured.Unstructured) ([]FieldChange, error) {
	if matchesLive(desired.Object, result.Object) {
		return nil, nil
	}
	conv, _, err := r.schemas.of(ctx, t.mapping.GVK)
	if err != nil {
		return nil, err
	}
	all, err := compare.Fields(conv, compare.States{Before: desired, After: result, Desired: desired})
	if err != nil {
		return nil, nil // not an error: the server has accepted the object
	}
	return slices.DeleteFunc(all, func(f FieldChange) bool { return f.Kind == compare.Added }), nil
}

// sameContent reports whether two states of an object are equal apart from metadata that
// the server sets.
func sameContent(a, b *unstructured.Unstructured) bool {
	return reflect.DeepEqual(plainContent(a), plainContent(b))
}

func plainContent(obj *unstructured.Unstructured) map[string]any {
	o := shallowCopy(obj)
	if meta, ok := o.Object["metadata"].(map[string]any); ok {
		for _, name := range kube.ServerMetadata() {
			delete(meta, name)
		}
	}
	return o.Object
}
