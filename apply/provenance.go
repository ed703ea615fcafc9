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

// A Provenance says where an object of a release came from: the release created
// it, or adopted it. It speaks of one object and not of others of its name.
type Provenance struct {
	UID     string
	Created bool
	Adopted *Adoption // nil when the release created it
}

// An Adoption is how an object that the release didn't create became its own.
type Adoption struct {
	Revision int    // that adopted it; 0 for the one that is being planned
	From     string // the release that had it, as "namespace/name"; empty for none
	// Final says that a revision which has the object has succeeded since: the
	// object is the release's like those that it created. Until then it is to be
	// given back, and never to be deleted.
	Final bool
	Prior Prior
}

// Prior is what an adopted object was before anything of it was written. It is
// JSON of a few kilobytes, and may hold confidential values.
type Prior struct {
	// Stamps are the label and the annotations by which releases own objects, as
	// far as the object had them.
	Stamps map[string]string `json:"stamps,omitempty"`
	// Values are the fields that were overwritten or removed, as a part of the
	// object with its apiVersion and kind.
	Values json.RawMessage `json:"values,omitempty"`
	// Added are the fields that weren't there, as a set of
	// sigs.k8s.io/structured-merge-diff.
	Added json.RawMessage `json:"added,omitempty"`
	// Owners are the object's managedFields.
	Owners []metav1.ManagedFieldsEntry `json:"owners,omitempty"`
	// Cut says that values, added fields and owners were too large to be recorded.
	Cut bool `json:"cut,omitempty"`
}

// maxPrior bounds what is recorded of one object, in bytes of JSON: most objects
// are smaller as a whole, and a hundred such still fit into a record.
const maxPrior = 64 << 10

// mustBeGivenBack says that an object is to be given back and not to be deleted.
func (o *Provenance) mustBeGivenBack() bool { return o != nil && o.Adopted != nil && !o.Adopted.Final }

// WithoutFields is the state without its fields and their owners.
func (p Prior) WithoutFields() Prior { return Prior{Stamps: p.Stamps, Cut: true} }

// shorten drops the fields when all is too large.
func (p *Prior) shorten() {
	if data, err := json.Marshal(p); err != nil || len(data) > maxPrior {
		*p = p.WithoutFields()
	}
}

// stampsOf are the marks of ownership on an object, whatever they say.
func stampsOf(obj metav1.Object) map[string]string {
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

// restamp gives an object the marks of ownership that it had.
func restamp(obj *unstructured.Unstructured, stamps map[string]string) {
	set := func(values map[string]string, keys ...string) map[string]string {
		values = maps.Clone(values)
		for _, key := range keys {
			delete(values, key)
			if v, ok := stamps[key]; ok {
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

// provenanceOf tells where a live object that the release has, or is to have, came
// from; nil when no record says it. An object that carries our ownership without
// any revision having had it was given to us by hand: it was there before, too.
func (p *planning) provenanceOf(t *target, live metav1.Object, adopting bool) *Provenance {
	if t.fromCRDs {
		return nil
	}
	uid := string(live.GetUID())
	known := p.history.provenance[t.id]
	switch {
	case t.progress.provenance != nil && t.progress.provenance.UID == uid:
		return t.progress.provenance.clone() // what is there by now is our doing
	case adopting:
	case known != nil && known.UID == uid:
		return known.clone()
	case t.progress.wasAbsent || p.history.hadObject(t.id):
		return nil
	}
	a := live.GetAnnotations()
	owner := Owner{Release: a[releaseName], Namespace: a[releaseNamespace]}
	adoption := &Adoption{Prior: Prior{Stamps: stampsOf(live), Owners: live.GetManagedFields()}}
	if owner != p.a.owner && owner.Release != "" && owner.Namespace != "" {
		adoption.From = owner.String()
	}
	adoption.Prior.shorten()
	return &Provenance{UID: uid, Adopted: adoption}
}

func (o *Provenance) clone() *Provenance {
	out := *o
	if o.Adopted != nil {
		adopted := *o.Adopted
		out.Adopted = &adopted
	}
	return &out
}

// noteProvenance works out from the revisions where objects came from. Each says it
// of what it had; a successful one of another tool makes its objects the
// release's, and what was uninstalled is over.
func (p *releaseHistory) noteProvenance(r Revision, had []kube.ID) {
	if r.Status == "uninstalled" {
		p.provenance, p.lastUninstall = map[kube.ID]*Provenance{}, r.Revision
		return
	}
	final := r.Status == "deployed" || r.Status == "superseded"
	for _, id := range had {
		if o := p.provenance[id]; o.mustBeGivenBack() && (r.Provenance != nil || final) {
			delete(p.provenance, id) // unless it is told again
		}
	}
	for key, o := range r.Provenance {
		id, ok := IDOf(key)
		if !ok {
			continue
		}
		if before := p.provenance[id]; o.UID == "" && before != nil {
			o.UID = before.UID
		}
		p.provenance[id] = &o
	}
}

// hadObject says whether a revision since the last uninstall had an object.
func (p *releaseHistory) hadObject(id kube.ID) bool {
	for _, s := range p.objects[id] {
		if s.revision > p.lastUninstall {
			return true
		}
	}
	return p.hooks[id].revision > p.lastUninstall
}

// rememberPrior notes what an update does to an object that may have to be given
// back.
func (u *updating) rememberPrior(c *Change, diff *typed.Comparison, result *unstructured.Unstructured) {
	if !c.Provenance.mustBeGivenBack() || c.Provenance.Adopted.Prior.Cut {
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

// extend adds to what is known of an object's former state what is about to be
// changed now and isn't known yet.
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
	if setByOthers := c.notOurs(over); known != nil && !setByOthers.Empty() {
		// Somebody has set it since: that is what is overwritten now.
		known, knownSet, added = known.RemoveItems(setByOthers.Intersection(knownSet)), knownSet.Difference(setByOthers), added.Difference(setByOthers)
	} else {
		added = added.Difference(setByOthers)
	}
	over = over.Difference(stampPaths()).Difference(knownSet).Difference(added).Difference(ownership.Unownable())
	more := becomes.Difference(c.liveSet).Difference(stampPaths()).Difference(knownSet).Difference(ownership.Unownable())
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
	prior.Values, err = json.Marshal(identified(values, live))
	return err
}

// notOurs is the part of set that others own alone.
func (c *comparison) notOurs(set *fieldpath.Set) *fieldpath.Set {
	for _, e := range c.entries {
		if isOurs(e) {
			set = set.Difference(e.Set)
		}
	}
	return set
}

// identified is part of an object with its apiVersion and kind.
func identified(part *typed.TypedValue, of *unstructured.Unstructured) map[string]any {
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

// stampPaths are where Stamps are.
func stampPaths() *fieldpath.Set {
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

// WithOnAdoption returns an Applier whose Run calls adopting, from any goroutine,
// before the first write to an object whose Provenance says that it may have to
// be given back: it is to put that on record. After an error the object isn't
// written.
func (a *Applier) WithOnAdoption(adopting func(ctx context.Context, c Change) error) *Applier {
	out := *a
	out.adopting = adopting
	return &out
}

// announce tells of an object that is about to be written and may have to be
// given back: what it was must be on record before.
func (a *Applier) announce(ctx context.Context, c Change) error {
	if c.Deferral != nil || c.Action == GiveBack || !c.Provenance.mustBeGivenBack() {
		return nil
	}
	if t := c.execution.t; t != nil {
		t.progress.provenance = c.Provenance
	}
	if a.adopting == nil {
		return nil
	}
	if err := a.adopting(ctx, c); err != nil {
		return &ObjectError{ID: c.ID, Source: c.Source, Doing: "recording the former state of", Err: err}
	}
	return nil
}
