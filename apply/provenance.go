package apply

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"deployer/apply/compare"
	"deployer/apply/ownership"
	"deployer/internal/kube"
)

// A Provenance says whether the release created or adopted an object. It is about the
// object with this UID, not about others of its name.
type Provenance struct {
	UID     string
	Created bool
	Adopted *Adoption // nil when the release created it
}

// An Adoption describes how an object that the release didn't create became part of it.
type Adoption struct {
	Revision int    // that adopted it; 0 for the one that is being planned
	From     string // the release that had it, as "namespace/name"; empty for none
	// Final says that a revision with the object has succeeded since, so that it is the
	// release's like an object that it created. Until then the object is given back and
	// never deleted.
	Final bool
	Prior Prior
}

// Prior is what an adopted object was before anything of it was written. It is
// JSON of a few kilobytes, and may hold confidential values.
type Prior struct {
	// OwnershipMetadata are the ownership label and annotations that the object had.
	OwnershipMetadata map[string]string `json:"stamps,omitempty"`
	// Values are the overwritten or removed fields, as a partial object with apiVersion
	// and kind.
	Values json.RawMessage `json:"values,omitempty"`
	// Added are the fields that weren't there, as a set of
	// sigs.k8s.io/structured-merge-diff.
	Added json.RawMessage `json:"added,omitempty"`
	// ManagedFields are those of the object.
	ManagedFields []metav1.ManagedFieldsEntry `json:"owners,omitempty"`
	// FieldsOmitted says that Values, Added and ManagedFields were too large to be recorded.
	FieldsOmitted bool `json:"cut,omitempty"`
}

// maxPrior limits what is recorded of one object, in bytes of JSON. Most whole objects
// are smaller, and a hundred of this size still fit into a record.
const maxPrior = 64 << 10

// mustBeGivenBack reports whether an object has to be given back instead of deleted.
func (p *Provenance) mustBeGivenBack() bool { return p != nil && p.Adopted != nil && !p.Adopted.Final }

// WithoutFields returns the prior state without fields and managed fields, with FieldsOmitted
// set.
func (p Prior) WithoutFields() Prior {
	return Prior{OwnershipMetadata: p.OwnershipMetadata, FieldsOmitted: true}
}

// shorten drops the fields when all is too large.
func (p *Prior) shorten() {
	if data, err := json.Marshal(p); err != nil || len(data) > maxPrior {
		*p = p.WithoutFields()
	}
}

// ownershipMetadata returns the ownership label and annotations of an object, whatever their
// values.
func ownershipMetadata(obj metav1.Object) map[string]string {
	out := map[string]string{}
	if v, ok := obj.GetLabels()[managedByLabel]; ok {
		out[managedByLabel] = v
	}
	for _, key := range []string{releaseName, releaseNamespace} {
		if v, ok := obj.GetAnnotations()[key]; ok {
			out[key] = v
		}
	}
	return out
}

// restoreOwnershipMetadata restores the ownership label and annotations of an object.
func restoreOwnershipMetadata(obj *unstructured.Unstructured, metadata map[string]string) {
	set := func(values map[string]string, keys ...string) map[string]string {
		values = maps.Clone(values)
		for _, key := range keys {
			delete(values, key)
			if v, ok := metadata[key]; ok {
				if values == nil {
					values = map[string]string{}
				}
				values[key] = v
			}
		}
		return values
	}
	obj.SetLabels(set(obj.GetLabels(), managedByLabel))
	obj.SetAnnotations(set(obj.GetAnnotations(), releaseName, releaseNamespace))
}

// provenanceOf returns the provenance of a live object of the release; nil when no record
// tells. An object with our ownership that no revision had was labelled by hand, so it is
// adopted too.
func (p *planning) provenanceOf(t *target, live metav1.Object, adopting bool) *Provenance {
	if t.fromCRDs {
		return nil
	}
	uid := string(live.GetUID())
	known := p.history.provenance[t.id]
	switch {
	case t.progress.provenance != nil && t.progress.provenance.UID == uid:
		return t.progress.provenance.clone() // we have written it since, so its first provenance counts
	case adopting:
	case known != nil && known.UID == uid:
		return known.clone()
	case t.progress.wasAbsent || p.history.hadObject(t.id):
		return nil
	}
	owner := ownerOf(live)
	adoption := &Adoption{Prior: Prior{OwnershipMetadata: ownershipMetadata(live), ManagedFields: live.GetManagedFields()}}
	if owner != p.a.owner && owner.Release != "" && owner.Namespace != "" {
		adoption.From = owner.String()
	}
	adoption.Prior.shorten()
	return &Provenance{UID: uid, Adopted: adoption}
}

func (p *Provenance) clone() *Provenance {
	out := *p
	if p.Adopted != nil {
		adopted := *p.Adopted
		out.Adopted = &adopted
	}
	return &out
}

// noteProvenance updates the provenance of objects with one revision. Each revision
// records it for its own objects. A successful revision of another tool makes its objects
// the release's. An uninstall ends all provenance.
func (h *releaseHistory) noteProvenance(r Revision, had []kube.ID) {
	if r.Status == "uninstalled" {
		h.provenance, h.lastUninstall = map[kube.ID]*Provenance{}, r.Revision
		return
	}
	final := r.Status == "deployed" || r.Status == "superseded"
	for _, id := range had {
		if o := h.provenance[id]; o.mustBeGivenBack() && (r.Provenance != nil || final) {
			delete(h.provenance, id) // unless this revision records it again, below
		}
	}
	for key, o := range r.Provenance {
		id, ok := ParseKey(key)
		if !ok {
			continue
		}
		if before := h.provenance[id]; o.UID == "" && before != nil {
			o.UID = before.UID
		}
		h.provenance[id] = &o
	}
}

// hadObject reports whether a revision since the last uninstall had an object.
func (h *releaseHistory) hadObject(id kube.ID) bool {
	for _, s := range h.objects[id] {
		if s.revision > h.lastUninstall {
			return true
		}
	}
	return h.hooks[id].revision > h.lastUninstall
}

// rememberPrior records what an update overwrites in an object that may have to be given
// back.
func (u *updateDecision) rememberPrior(c *Change, diff *typed.Comparison, result *unstructured.Unstructured) {
	if !c.Provenance.mustBeGivenBack() || c.Provenance.Adopted.Prior.FieldsOmitted {
		return
	}
	prior := &c.Provenance.Adopted.Prior
	over := diff.Modified.Union(diff.Removed)
	if dropsLastApplied(*c) {
		over.Insert(fieldpath.MakePathOrDie("metadata", "annotations", kube.LastAppliedAnnotation))
	}
	if err := u.comparison.extend(prior, u.live, over, result); err != nil {
		*prior = prior.WithoutFields()
	}
	prior.shorten()
}

// extend adds to the recorded former state what is about to be changed and isn't recorded
// yet.
func (c *comparison) extend(prior *Prior, live *unstructured.Unstructured, over *fieldpath.Set, result *unstructured.Unstructured) error {
	v, err := compare.Typed(c.conv, withoutManagedFields(result))
	if err != nil {
		return err
	}
	becomes, err := v.ToFieldSet()
	if err != nil {
		return err
	}
	known, err := c.priorValues(prior, live)
	if err != nil {
		return err
	}
	added, err := prior.added()
	if err != nil {
		return err
	}
	knownSet := fieldpath.NewSet()
	if known != nil {
		if knownSet, err = known.ToFieldSet(); err != nil {
			return err
		}
	}
	setByOthers := c.notOurs(over)
	if known != nil && !setByOthers.Empty() {
		// Somebody else has set it since it was recorded: their value is what is
		// overwritten now.
		known, knownSet = known.RemoveItems(setByOthers.Intersection(knownSet)), knownSet.Difference(setByOthers)
	}
	added = added.Difference(setByOthers)
	over = over.Difference(ownershipMetadataPaths()).Difference(knownSet).Difference(added).Difference(ownership.Unownable())
	more := becomes.Difference(c.liveSet).Difference(ownershipMetadataPaths()).Difference(knownSet).Difference(ownership.Unownable())
	if added = added.Union(more); !added.Empty() {
		if prior.Added, err = added.ToJSON(); err != nil {
			return err
		}
	}
	if over.Empty() {
		return nil
	}
	values := c.live.ExtractItems(over, typed.WithAppendKeyFields())
	if known != nil {
		if values, err = values.Merge(known); err != nil {
			return err
		}
	}
	prior.Values, err = json.Marshal(withTypeMeta(values, live))
	return err
}

// notOurs returns the fields of a set that we don't own.
func (c *comparison) notOurs(set *fieldpath.Set) *fieldpath.Set {
	for _, e := range c.entries {
		if e.IsOurs() {
			set = set.Difference(e.Set)
		}
	}
	return set
}

// withTypeMeta returns a partial object with its apiVersion and kind.
func withTypeMeta(part *typed.TypedValue, of *unstructured.Unstructured) map[string]any {
	out, ok := part.AsValue().Unstructured().(map[string]any)
	if !ok {
		out = map[string]any{}
	}
	out["apiVersion"], out["kind"] = of.GetAPIVersion(), of.GetKind()
	return out
}

// priorValues reads the former values; nil when there are none.
func (c *comparison) priorValues(prior *Prior, live *unstructured.Unstructured) (*typed.TypedValue, error) {
	values, err := prior.values()
	if err != nil || values == nil || values.GetAPIVersion() != live.GetAPIVersion() {
		return nil, err
	}
	return compare.Typed(c.conv, values)
}

// values decodes Values; nil when there are none.
func (p *Prior) values() (*unstructured.Unstructured, error) {
	if len(p.Values) == 0 {
		return nil, nil
	}
	out := &unstructured.Unstructured{}
	return out, utiljson.Unmarshal(p.Values, &out.Object) // whole numbers stay such
}

// added decodes Added.
func (p *Prior) added() (*fieldpath.Set, error) {
	out := fieldpath.NewSet()
	if len(p.Added) == 0 {
		return out, nil
	}
	return out, out.FromJSON(bytes.NewReader(p.Added))
}

// ownershipMetadataPaths are the paths of Prior.OwnershipMetadata.
func ownershipMetadataPaths() *fieldpath.Set {
	return fieldpath.NewSet(
		fieldpath.MakePathOrDie("metadata", "labels", managedByLabel),
		fieldpath.MakePathOrDie("metadata", "annotations", releaseName),
		fieldpath.MakePathOrDie("metadata", "annotations", releaseNamespace),
	)
}

// PriorObject gives the former values as an object, for whoever has to hide
// confidential ones; nil when there are none, and for nil.
func (a *Adoption) PriorObject() *unstructured.Unstructured {
	if a == nil {
		return nil
	}
	values, err := a.Prior.values()
	if err != nil {
		return nil // not shown either
	}
	return values
}

// WithOnAdoption returns an Applier whose Run calls onAdoption, from any goroutine, before the
// first write to an object that may have to be given back. onAdoption has to record
// Change.Provenance; if it fails, the object isn't written.
func (a *Applier) WithOnAdoption(onAdoption func(ctx context.Context, c Change) error) *Applier {
	out := *a
	out.onAdoption = onAdoption
	return &out
}

// announce calls onAdoption for an object that is about to be written and may have to be
// given back: its former state must be on record first.
func (a *Applier) announce(ctx context.Context, c Change) error {
	if c.Deferral != nil || c.Action == GiveBack || !c.Provenance.mustBeGivenBack() {
		return nil
	}
	if t := c.execution.t; t != nil {
		t.progress.provenance = c.Provenance
	}
	if a.onAdoption == nil {
		return nil
	}
	if err := a.onAdoption(ctx, c); err != nil {
		return &ObjectError{ID: c.ID, Source: c.Source, Doing: "recording the former state of", Err: err}
	}
	return nil
}
