package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"deployer/apply/compare"
	"deployer/apply/fields"
	"deployer/apply/ownership"
	"deployer/apply/verify"
	"deployer/internal/kube"
)

// describes reports whether o was recorded for this very object.
func (p *Provenance) describes(obj metav1.Object) bool {
	return p != nil && p.UID == string(obj.GetUID())
}

// adopter names the revision that adopted the object.
func (p *Provenance) adopter() string {
	if p.Adopted.Revision == 0 {
		return "a revision that failed"
	}
	return fmt.Sprintf("revision %d, which failed", p.Adopted.Revision)
}

// decideAdoptedOrphan decides about the live object of an orphan that only unsuccessful
// runs have adopted; false for other orphans. Such an object is never deleted, because
// its owner may have data in it.
func (p *pruner) decideAdoptedOrphan(o orphan, meta *metav1.PartialObjectMetadata, c *Change) bool {
	from := p.history.provenance[o.id]
	if from.describes(meta) {
		c.Provenance = from
	}
	ours := ownerOf(c.Live) == p.a.owner
	switch {
	case !from.mustBeGivenBack():
		return false
	case !from.describes(meta):
		c.Reason = "was recreated by another client since " + from.adopter() + ", had adopted the one before"
		return ours
	case meta.DeletionTimestamp != nil, !ours && !isHalfAdopted(from, meta):
		return false // the owner that it names has it already
	case len(p.unlistedGroups) > 0 && !p.req.Uninstall && !p.a.opts.PartialDiscovery:
		c.RevisitNextRelease = true
		c.Reason = "the API server can't list " + strings.Join(p.unlistedGroups, ", ") + ", so the chart may have rendered less than it should"
		return true
	}
	c.Action, c.Reason = GiveBack, from.whyGivenBack()
	c.execution = p.executionOf(o, write{verb: giveBackObject, precondition: precondition{uid: meta.UID}})
	return true
}

// whyGivenBack says to whom an object is given back, and why.
func (p *Provenance) whyGivenBack() string {
	text := "given back to " + p.formerOwner() + ": only " + p.adopter() + ", had adopted it"
	if p.Adopted.Prior.FieldsOmitted {
		text += "; its former fields were too large to record, so its fields stay as they are"
	}
	return text
}

// formerOwner names the owner before the adoption: a release, or the managers of its
// fields.
func (p *Provenance) formerOwner() string {
	if p.Adopted.From != "" {
		return "release " + p.Adopted.From
	}
	var names []string
	for _, e := range p.Adopted.Prior.ManagedFields {
		if e.Subresource == "" && !slices.Contains(names, e.Manager) {
			names = append(names, e.Manager)
		}
	}
	if len(names) == 0 || len(names) > 3 {
		return "its former owner"
	}
	return strings.Join(names, ", ") + ", as an object of no release"
}

// isHalfAdopted reports whether an object that has its former ownership metadata
// has fields of ours all the same: a run died, or was refused, halfway.
func isHalfAdopted(from *Provenance, meta metav1.Object) bool {
	if !maps.Equal(ownershipMetadata(meta), from.Adopted.Prior.OwnershipMetadata) {
		return false
	}
	return slices.ContainsFunc(meta.GetManagedFields(), isOursRaw) && !slices.ContainsFunc(from.Adopted.Prior.ManagedFields, isOursRaw) && !from.Adopted.Prior.FieldsOmitted
}

// giveBack restores an object to its state before it was adopted: its ownership metadata,
// the values that we overwrote and that are still ours, and the owners of its fields. One
// request does all of that, bound to the observed version. A second one removes the
// managedFields entry that the first has created.
func (a *Applier) giveBack(ctx context.Context, c Change) (Change, error) {
	o := c.execution.orphan
	r := &restoration{
		p: c.execution.p, from: c.Provenance, last: o.lastDeclared.obj, t: &target{id: c.ID, mapping: o.mapping},
		ours: fieldpath.NewSet(), others: fieldpath.NewSet(),
	}
	if err := r.read(ctx); err != nil {
		return c, err
	}
	if r.live == nil || !r.from.describes(r.live) {
		return c, nil // gone, or replaced by an object that isn't ours
	}
	if ownerOf(r.live) != ownerOf(c.Live) {
		return c, changedMeanwhile(c.ID, o.mapping)
	}
	r.t.obj = r.live
	if err := r.compute(ctx); err != nil {
		r.onlyOwnershipMetadata(err)
	}
	err := r.write(ctx)
	if apierrors.IsForbidden(err) {
		err = r.write(ctx) // retried once: what isn't given back now is never given back
	}
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
		// Not every former value is accepted: volumes can't shrink, or a policy rejects
		// it.
		r.onlyOwnershipMetadata(verify.Explain(r.live, err))
		err = r.write(ctx)
	}
	if apierrors.IsNotFound(err) {
		err = nil
	}
	if err == nil && len(r.stays) > 0 {
		c.Warning = "given back, but not completely: " + strings.Join(r.stays, "; ")
	}
	return c, err
}

// onlyOwnershipMetadata restores only the ownership metadata and records why the other fields stay.
func (r *restoration) onlyOwnershipMetadata(why error) {
	r.becomes = r.live.DeepCopy()
	restoreOwnershipMetadata(r.becomes, r.from.Adopted.Prior.OwnershipMetadata)
	r.stays = []string{"its fields stay as this release left them: " + why.Error()}
}

// write makes the requests.
func (r *restoration) write(ctx context.Context) error {
	owners, err := r.managedFields()
	if err != nil {
		return err
	}
	set := patchOperation{"add", "/metadata/managedFields", owners}
	ops := jsonPatchOf("", plainContent(r.live), plainContent(r.becomes))
	result, err := r.p.a.sendJSONPatch(ctx, r.t, r.live.GetResourceVersion(), append(ops, set), asWrite)
	if err != nil || !r.stillOurs(result) {
		return err
	}
	_, err = r.p.a.sendJSONPatch(ctx, r.t, result.GetResourceVersion(), []patchOperation{set}, asWrite)
	if apierrors.IsConflict(err) {
		return nil // somebody else has written it in the meantime: it is given back
	}
	return err
}

// changedMeanwhile returns a conflict, which makes the caller re-decide about the object.
func changedMeanwhile(id kube.ID, m kube.Mapping) error {
	return apierrors.NewConflict(m.Resource.GroupResource(), id.Name, fmt.Errorf("its owner has changed"))
}

// restoration is one object being given back.
type restoration struct {
	p    *planning
	t    *target
	from *Provenance
	last *unstructured.Unstructured // its manifest in the last revision that had it; nil when unknown
	live *unstructured.Unstructured

	becomes *unstructured.Unstructured
	stays   []string // what can't be restored, and why
	entries []ownership.Entry
	ours    *fieldpath.Set // the fields of our entries
	others  *fieldpath.Set // those of all others
}

// read reads the object in the API version of its recorded values, if that is still
// served.
func (r *restoration) read(ctx context.Context) error {
	values, err := r.from.Adopted.Prior.values()
	if err != nil {
		return fmt.Errorf("reading its recorded former state: %w", err)
	}
	if values != nil {
		if m, err := r.p.a.cluster.Mapping(ctx, values.GroupVersionKind(), false); err == nil {
			r.t.mapping = m
		}
	}
	r.live, err = r.p.a.get(ctx, r.t.mapping, r.t.id)
	return err
}

// compute computes the restored object.
func (r *restoration) compute(ctx context.Context) error {
	conv, _, err := r.p.schemas.of(ctx, r.t.mapping.GVK)
	if err != nil {
		return err
	}
	if r.entries, err = ownership.Parse(r.live.GetManagedFields()); err != nil {
		return err
	}
	for _, e := range r.entries {
		if e.IsOurs() {
			r.ours = r.ours.Union(e.Set)
		} else {
			r.others = r.others.Union(e.Set)
		}
	}
	live, err := compare.Typed(conv, withoutManagedFields(r.live))
	if err != nil {
		return err
	}
	if live, err = r.withoutAdded(conv, live); err == nil {
		live, err = r.withFormer(conv, live)
	}
	if err != nil {
		return err
	}
	obj, err := conv.TypedToObject(live)
	if err != nil {
		return err
	}
	r.becomes = obj.(*unstructured.Unstructured).DeepCopy()
	restoreOwnershipMetadata(r.becomes, r.from.Adopted.Prior.OwnershipMetadata)
	return nil
}

// isOursRaw is Entry.IsOurs of an entry as the API has it.
func isOursRaw(e metav1.ManagedFieldsEntry) bool { return e.Manager == Manager && e.Subresource == "" }

// withoutAdded removes what we added, as the API server would if we applied an object
// without it.
func (r *restoration) withoutAdded(conv managedfields.TypeConverter, live *typed.TypedValue) (*typed.TypedValue, error) {
	added, err := r.from.Adopted.Prior.added()
	if err != nil || added.Empty() {
		return live, err
	}
	entries := slices.DeleteFunc(slices.Clone(r.entries), ownership.Entry.IsOurs)
	ours := ownership.Entry{Manager: Manager, Operation: metav1.ManagedFieldsOperationApply}
	rest, err := restOf(live, added)
	if err != nil {
		return nil, err
	}
	entries = append(entries, ours.With(r.ours.Intersection(added)), ownership.Entry{Manager: "rest", Operation: metav1.ManagedFieldsOperationApply}.With(rest))
	nothing := &unstructured.Unstructured{Object: map[string]any{"apiVersion": r.live.GetAPIVersion(), "kind": r.live.GetKind()}}
	nothing.SetName(r.live.GetName())
	if ns := r.live.GetNamespace(); ns != "" {
		nothing.SetNamespace(ns)
	}
	desired, err := compare.Typed(conv, nothing)
	if err != nil {
		return nil, err
	}
	return ownership.SimulateApply(live, desired, entries)
}

// restOf returns the fields of a live object that we didn't add. They get an owner for
// the simulation: since the adoption some have none, and an apply removes a whole map
// with the last of its owned entries.
func restOf(live *typed.TypedValue, added *fieldpath.Set) (*fieldpath.Set, error) {
	all, err := live.ToFieldSet()
	if err != nil {
		return nil, err
	}
	return all.Leaves().RecursiveDifference(added), nil
}

// withFormer restores the former values of fields that are still as we wrote them.
func (r *restoration) withFormer(conv managedfields.TypeConverter, live *typed.TypedValue) (*typed.TypedValue, error) {
	values, err := r.from.Adopted.Prior.values()
	if err != nil || values == nil {
		return live, err
	}
	if values.GetAPIVersion() != r.live.GetAPIVersion() {
		r.stays = append(r.stays, "its former state is recorded in "+values.GetAPIVersion()+", which the cluster no longer serves")
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
	set.Leaves().Iterate(func(path fieldpath.Path) {
		switch {
		case len(path) == 1 && path[0].FieldName != nil && (*path[0].FieldName == "apiVersion" || *path[0].FieldName == "kind"), isKey(path):
		case server.Has(path):
			drop.Insert(path.Copy()) // earlier versions have recorded metadata.generation
		case r.asWritten(path):
		default:
			drop.Insert(path.Copy())
			if now, ok := fields.Value(r.live.Object, path); ok {
				if was, had := fields.Value(values.Object, path); !had || !fields.Equal(now, was) {
					r.stays = append(r.stays, fields.String(path)+" has been changed since")
				}
			}
		}
	})
	if !drop.Empty() {
		former = former.RemoveItems(drop)
	}
	return live.Merge(former)
}

// isKey reports whether a path ends at a key field of a list item.
func isKey(path fieldpath.Path) bool {
	if len(path) < 2 || path[len(path)-2].Key == nil || path[len(path)-1].FieldName == nil {
		return false
	}
	return slices.ContainsFunc(*path[len(path)-2].Key, func(f value.Field) bool { return f.Name == *path[len(path)-1].FieldName })
}

// asWritten reports whether a field that we overwrote is still as we wrote it: a change
// by somebody else would remove it from our managed fields. A missing field counts if our
// last revision doesn't state it, because then we removed it.
func (r *restoration) asWritten(path fieldpath.Path) bool {
	now, there := fields.Value(r.live.Object, path)
	stated, has := any(nil), false
	if r.last != nil {
		stated, has = fields.Value(r.last.Object, path)
	}
	switch {
	case !there:
		return !has
	case len(r.entries) == 0:
		return has && fields.Equal(now, stated) // stored without owners
	}
	return fields.Owns(r.ours, path) && !r.others.Has(path)
}

// managedFields returns the managedFields of the restored object: the entries of others as they
// are, and for the former owners the fields that still exist and that nobody else owns.
func (r *restoration) managedFields() ([]metav1.ManagedFieldsEntry, error) {
	list := slices.DeleteFunc(slices.Clone(r.entries), ownership.Entry.IsOurs)
	former, err := ownership.Parse(r.from.Adopted.Prior.ManagedFields)
	if err != nil {
		return nil, err
	}
	for _, e := range former {
		if e.Subresource != "" {
			continue
		}
		again := fieldpath.NewSet()
		e.Set.Iterate(func(path fieldpath.Path) {
			if _, there := fields.Value(r.becomes.Object, path); there && !r.others.Has(path) {
				again.Insert(path.Copy())
			}
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

// stillOurs reports whether an object has entries of ours that it didn't have before it
// was adopted.
func (r *restoration) stillOurs(obj *unstructured.Unstructured) bool {
	return obj != nil && slices.ContainsFunc(obj.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return isOursRaw(e) && !slices.ContainsFunc(r.from.Adopted.Prior.ManagedFields, func(o metav1.ManagedFieldsEntry) bool {
			return o.Manager == e.Manager && o.Operation == e.Operation && o.Subresource == ""
		})
	})
}
