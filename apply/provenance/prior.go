package provenance

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"deployer/apply/compare"
	"deployer/apply/ownership"
)

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

// Remember adds what is about to be changed and isn't recorded yet: the fields of live that are
// overwritten or removed, and those that only the result has. What is too large is left out.
func (p *Prior) Remember(live *compare.Live, over *fieldpath.Set, result *unstructured.Unstructured) {
	if p.FieldsOmitted {
		return
	}
	if err := p.extend(live, over, result); err != nil {
		*p = p.WithoutFields()
	}
	p.shorten()
}

func (p *Prior) extend(live *compare.Live, over *fieldpath.Set, result *unstructured.Unstructured) error {
	becomes, err := compare.FieldSet(live.Converter, result)
	if err != nil {
		return err
	}
	known, knownSet, err := p.typedValues(live)
	if err != nil {
		return err
	}
	added, err := p.added()
	if err != nil {
		return err
	}
	setByOthers := notOurs(live.Entries, over)
	if known != nil && !setByOthers.Empty() {
		// Somebody else has set it since it was recorded: their value is what is
		// overwritten now.
		known, knownSet = known.RemoveItems(setByOthers.Intersection(knownSet)), knownSet.Difference(setByOthers)
	}
	added = added.Difference(setByOthers)
	unrecorded := ownershipMetadataPaths().Union(ownership.Unownable()).Union(knownSet)
	over = over.Difference(unrecorded).Difference(added)
	if added = added.Union(becomes.Difference(live.Fields).Difference(unrecorded)); !added.Empty() {
		if p.Added, err = added.ToJSON(); err != nil {
			return err
		}
	}
	if over.Empty() {
		return nil
	}
	values := live.Value.ExtractItems(over, typed.WithAppendKeyFields())
	if known != nil {
		if values, err = values.Merge(known); err != nil {
			return err
		}
	}
	p.Values, err = json.Marshal(withTypeMeta(values, live.Object))
	return err
}

// notOurs returns the fields of a set that we don't own.
func notOurs(entries []ownership.Entry, set *fieldpath.Set) *fieldpath.Set {
	for _, e := range entries {
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

// typedValues reads the former values and their fields by the schema of the live object; nil and
// an empty set when there are none in its API version.
func (p *Prior) typedValues(live *compare.Live) (*typed.TypedValue, *fieldpath.Set, error) {
	values, err := p.Object()
	if err != nil || values == nil || values.GetAPIVersion() != live.Object.GetAPIVersion() {
		return nil, fieldpath.NewSet(), err
	}
	v, err := compare.Typed(live.Converter, values)
	if err != nil {
		return nil, nil, err
	}
	set, err := v.ToFieldSet()
	return v, set, err
}

// Object decodes Values; nil when there are none.
func (p *Prior) Object() (*unstructured.Unstructured, error) {
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
