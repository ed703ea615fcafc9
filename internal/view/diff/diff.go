// Package diff lists, field by field, what a change does to an object.
//
// The fields are those of apply.Change. Lists and maps that are set as a whole
// are taken apart here, and confidential values never leave the package. It is
// pure: it reads nothing but its arguments and never changes them.
package diff

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"deployer/apply"
	"deployer/apply/compare"
	"deployer/apply/decide"
	"deployer/apply/fields"
	"deployer/internal/hide"
)

// A Field is one field that changes. A subtree that is added or removed as a whole is one field.
type Field struct {
	// Path is written as package apply writes it:
	// spec.template.spec.containers[name="web"].image
	Path string             `json:"path"`
	Type compare.ChangeType `json:"kind"` // added, removed or changed
	// Before and After are the values, plain JSON data; nil when absent.
	Before any `json:"before,omitempty"`
	After  any `json:"after,omitempty"`
	// Hidden says that a value is confidential: Before and After are left out.
	Hidden bool `json:"hidden,omitempty"`
	// ByServer marks a field that the desired object doesn't have: a default, or set by an
	// admission webhook.
	ByServer bool `json:"by_server,omitempty"`
	// Follows names the changed objects of which the value is a checksum.
	Follows []string `json:"follows,omitempty"`
	// Random marks a change that is only due to nondeterministic templates: see
	// Nondeterminism.
	Random bool `json:"random,omitempty"`
	// Revision is the latest revision that declared a removed field; 0 when no stored one
	// did.
	Revision int `json:"from_revision,omitempty"`
}

// WithoutHidden returns the field without confidential texts in its values and its path.
func (f Field) WithoutHidden(hidden *hide.Texts) Field {
	f.Path = hide.Fields{}.HidePath(f.Path, hidden)
	if f.Before, f.After = hidden.HidePair(f.Before, f.After); f.Before == hide.Placeholder && f.After == hide.Placeholder {
		f.Before, f.After, f.Hidden = nil, nil, true
	}
	return f
}

// Fields lists the field changes of an object. Added values don't include the server's
// defaults. n is nil for an object that is rendered the same each time.
func Fields(c apply.Change, n *Nondeterminism) []Field {
	w := &walker{
		afterIsPartial: c.After() == nil || c.Action == decide.Recreate, hasDesired: c.Desired != nil,
		hidden: hide.ConfidentialFields(c.Live, c.After(), c.Desired), nondeterminism: n,
	}
	for _, f := range c.Fields {
		w.change(f, c.Desired)
	}
	return w.out
}

type walker struct {
	afterIsPartial bool // fields absent in After aren't removed, and quantities may be written differently
	hasDesired     bool // the change has a desired object
	hidden         hide.Fields
	nondeterminism *Nondeterminism
	out            []Field
}

func (w *walker) change(f compare.FieldChange, desired *unstructured.Unstructured) {
	var desiredValue any
	if desired != nil {
		desiredValue, _ = fields.Value(desired.Object, f.Path)
	}
	switch f.Type {
	case compare.Added:
		w.add(f.Path, f.After, desiredValue)
	case compare.Removed:
		w.emit(Field{Type: compare.Removed, Before: f.Before, Revision: f.Revision}, f.Path)
	case compare.Reordered:
		w.emit(Field{Type: compare.Changed, Before: f.Before, After: f.After}, f.Path)
	default:
		w.value(f.Path, f.Before, f.After, desiredValue)
	}
}

// value compares what both sides have at a path. Nil is absent.
func (w *walker) value(path fieldpath.Path, before, after, desired any) {
	switch {
	case before == nil && after == nil:
		return
	case before == nil:
		w.add(path, after, desired)
		return
	case after == nil:
		if !w.afterIsPartial {
			w.emit(Field{Type: compare.Removed, Before: before}, path)
		}
		return
	}
	bm, bok := before.(map[string]any)
	am, aok := after.(map[string]any)
	if bok && aok {
		w.maps(path, bm, am, desired)
		return
	}
	bl, bok := before.([]any)
	al, aok := after.([]any)
	if bok && aok {
		w.lists(path, bl, al, desired)
		return
	}
	if !equal(before, after) && !(w.afterIsPartial && compare.SameQuantity(fields.Names(path), before, after)) {
		w.emit(Field{Type: compare.Changed, Before: before, After: after, ByServer: w.hasDesired && desired == nil}, path)
	}
}

func (w *walker) maps(path fieldpath.Path, before, after map[string]any, desired any) {
	desiredMap, _ := desired.(map[string]any)
	for _, key := range sets.List(sets.KeySet(before).Union(sets.KeySet(after))) {
		w.value(below(path, fieldpath.FieldNameElement(key)), before[key], after[key], desiredMap[key])
	}
}

func below(path fieldpath.Path, e fieldpath.PathElement) fieldpath.Path {
	return append(slices.Clip(path), e)
}

// add emits an added value, without what the server added to it.
func (w *walker) add(path fieldpath.Path, after, desired any) {
	f := Field{Type: compare.Added, After: after, ByServer: w.hasDesired && desired == nil}
	if desired != nil {
		f.After = restrictTo(after, desired)
	}
	w.emit(f, path)
}

// emit hides what has to be hidden.
func (w *walker) emit(f Field, path fieldpath.Path) {
	f.Path, f.Random = fields.String(path), w.nondeterminism.explains(path, f)
	if w.hidden.Any() {
		f.Path = w.hidden.HidePath(f.Path, nil)
		f.Before, f.After, f.Hidden = ShownPair(w.hidden, nil, fields.Names(path), f.Before, f.After)
	}
	w.out = append(w.out, f)
}

// RestrictToDesired returns the part of the predicted object that the desired object also
// states. Without a prediction it returns the desired object.
func RestrictToDesired(predicted, desired *unstructured.Unstructured) *unstructured.Unstructured {
	if predicted == nil || desired == nil {
		return desired
	}
	out, _ := restrictTo(predicted.Object, desired.Object).(map[string]any)
	return &unstructured.Unstructured{Object: out}
}

// restrictTo returns the parts of v that desired has too.
func restrictTo(v, desired any) any {
	switch v := v.(type) {
	case map[string]any:
		desiredMap, ok := desired.(map[string]any)
		if !ok {
			return v
		}
		out := map[string]any{}
		for key, value := range v {
			if w := desiredMap[key]; w != nil {
				out[key] = restrictTo(value, w)
			}
		}
		return out
	case []any:
		desiredItems, ok := desired.([]any)
		if !ok || len(desiredItems) != len(v) {
			return v
		}
		out := make([]any, len(v))
		for i := range v {
			out[i] = restrictTo(v[i], desiredItems[i])
		}
		return out
	}
	return v
}
