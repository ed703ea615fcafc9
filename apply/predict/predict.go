// Package predict computes what applying a manifest makes of a live object, and which fields
// of others that touches: what a server-side apply and our migration of ownership do, and what
// is repaired that no apply can do. It makes no requests; the API server is asked afterwards
// whether it agrees.
package predict

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"deployer/apply/compare"
	"deployer/apply/fields"
	"deployer/apply/ownership"
)

// A Prediction is what an apply of Desired makes of a live object. New begins it, fields can
// be left to their owners, and Compute completes it.
type Prediction struct {
	Live    *compare.Live
	Desired *unstructured.Unstructured // without what was left to others

	// Unlike reports whether the live object isn't the same in an API version, so that the paths of entries
	// of it mean something else; nil means none.
	Unlike func(apiVersion string) bool

	// What Compute finds out.
	DesiredFields *fieldpath.Set
	Migrated      ownership.Migrated
	Predicted     *unstructured.Unstructured
	Repaired      bool        // Predicted can't be reached by an apply
	Collisions    []Collision // in Predicted, about which the policy for conflicts decides
	Overridden    []Collision // former members of unions in which others own something: they go, whoever owns that

	terms         ownership.Terms
	declared      []Declared
	olderDeclared []Declared     // by revisions before those
	relinquished  *fieldpath.Set // fields that must not become ours when ownership is migrated
	removedItems  *fieldpath.Set // what is removed because it collides with the desired object
}

// Declared is what one earlier revision said about an object.
type Declared struct {
	Revision int
	Fields   *fieldpath.Set
	Object   map[string]any
}

// New begins the prediction of applying desired, which it changes. declared are the revisions
// that may have left something of the object, and olderDeclared those before, of which others may have brought something back; oldest first.
func New(live *compare.Live, desired *unstructured.Unstructured, declared, olderDeclared []Declared) *Prediction {
	return &Prediction{Live: live, Desired: desired, declared: declared, olderDeclared: olderDeclared, relinquished: fieldpath.NewSet(), removedItems: fieldpath.NewSet()}
}

// Compute computes the migrated ownership and the predicted object from what is desired by
// now. It fails if the desired object doesn't fit its schema.
func (p *Prediction) Compute(terms ownership.Terms) error {
	p.terms = terms
	desired, err := compare.Typed(p.Live.Converter, p.Desired)
	if err != nil {
		return err
	}
	if p.DesiredFields, err = ownership.Appliable(desired); err != nil {
		return err
	}
	p.Migrated = ownership.Migrate(ownership.Migration{
		APIVersion:   p.Desired.GetAPIVersion(),
		Entries:      p.Live.Entries,
		Live:         p.Live.Fields,
		Desired:      p.DesiredFields,
		Declared:     everDeclared(p.declared),
		BroughtBack:  p.broughtBack(),
		Relinquished: p.relinquished,
		Unlike:       p.Unlike,
		Terms:        terms,
	})
	if err := p.simulate(p.Live.Value, desired); err != nil {
		return err
	}
	p.Repaired, err = p.repair(desired)
	return err
}

// simulate computes the result of applying desired to an object.
func (p *Prediction) simulate(live, desired *typed.TypedValue) error {
	result, err := ownership.SimulateApply(live, desired, p.comparable(p.Migrated.Entries))
	if err != nil {
		return err
	}
	p.Predicted, err = compare.Untyped(p.Live.Converter, result)
	return err
}

// comparable leaves out entries of API versions in which paths mean something else.
func (p *Prediction) comparable(entries []ownership.Entry) []ownership.Entry {
	if p.Unlike == nil {
		return entries
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e ownership.Entry) bool { return p.Unlike(e.APIVersion) })
}

// ManualAdditions returns the fields that people have added and that stay as they are in the
// object that the live one becomes, by field manager.
func (p *Prediction) ManualAdditions(result *unstructured.Unstructured) map[string][]string {
	out := map[string][]string{}
	for _, e := range p.Migrated.Entries {
		if !e.IsManual() || e.HasMade(p.Live.Object) {
			continue
		}
		added := fields.Where(ownership.WithoutMetadataAndStatus(e.Set).Difference(p.relinquished), func(path fieldpath.Path) bool {
			return p.Live.Fields.Has(path) && !fields.HasIn(p.DesiredFields, path) && p.stays(path, result)
		})
		for _, path := range fields.Topmost(added) {
			out[e.Manager] = append(out[e.Manager], fields.String(path))
		}
	}
	return out
}

// DroppedButOwnedByOthers returns the fields that the chart dropped and that stay in the object that
// the live one becomes, because another manager owns them too, by field manager.
func (p *Prediction) DroppedButOwnedByOthers(result *unstructured.Unstructured) map[string][]string {
	dropped := everDeclared(p.declared).Intersection(p.Live.Fields).Difference(p.DesiredFields).Difference(p.relinquished)
	out := map[string][]string{}
	for _, e := range p.Migrated.Entries {
		if e.Manager == ownership.Manager || e.Subresource != "" {
			continue
		}
		for _, path := range fields.Topmost(e.Set.Intersection(dropped)) {
			if !fields.HasIn(p.DesiredFields, path) && p.stays(path, result) {
				out[e.Label()] = append(out[e.Label()], fields.String(path))
			}
		}
	}
	return out
}

// stays reports whether the live object becomes result without a change of a field, apart from what is below it.
func (p *Prediction) stays(path fieldpath.Path, result *unstructured.Unstructured) bool {
	before, _ := fields.Value(p.Live.Object.Object, path)
	after, has := fields.Value(result.Object, path)
	_, isMap := before.(map[string]any)
	return has && (isMap || fields.Equal(before, after))
}

// broughtBack are the fields of older revisions that have what one of them said, as a whole item where they are in a list: an
// old state has come back. Other values are somebody's edit.
func (p *Prediction) broughtBack() *fieldpath.Set {
	return fields.Where(everDeclared(p.olderDeclared), func(path fieldpath.Path) bool {
		item := path
		for len(item) > 0 && item[len(item)-1].Key == nil {
			item = item[:len(item)-1]
		}
		return slices.ContainsFunc(p.olderDeclared, func(r Declared) bool { return p.isAsIn(r, path) && (len(item) == 0 || p.isAsIn(r, item)) })
	})
}

// isAsIn reports whether a live field is as a revision declares it.
func (p *Prediction) isAsIn(r Declared, path fieldpath.Path) bool {
	said, declared := fields.Value(r.Object, path)
	live, there := fields.Value(p.Live.Object.Object, path)
	return declared && there && compare.Satisfies(live, said)
}

// everDeclared returns the fields that any of the revisions declares.
func everDeclared(by []Declared) *fieldpath.Set {
	out := fieldpath.NewSet()
	for _, r := range by {
		out = out.Union(r.Fields)
	}
	return out
}

// isDeclared reports whether the chart or a stored revision declares a field.
func (p *Prediction) isDeclared(path fieldpath.Path) bool {
	return p.DesiredFields.Has(path) || p.LastDeclaredIn(path) > 0
}

// hasDeclaredValue reports whether a stored revision gave a field this value.
func (p *Prediction) hasDeclaredValue(path fieldpath.Path, value any) bool {
	return slices.ContainsFunc(p.declared, func(r Declared) bool {
		v, ok := fields.Value(r.Object, path)
		return ok && fields.Equal(v, value)
	})
}

// LastDeclaredIn returns the latest stored revision that declares a field; 0 when none does.
func (p *Prediction) LastDeclaredIn(path fieldpath.Path) int {
	for _, r := range slices.Backward(slices.Concat(p.olderDeclared, p.declared)) {
		if r.Fields.Has(path) {
			return r.Revision
		}
	}
	return 0
}
