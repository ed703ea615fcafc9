// Package diff shows people, field by field, what a change makes of an object.
//
// The fields are those of apply.Change. Lists and maps that are set as a whole
// are taken apart here, and confidential values never leave the package. It is
// pure: it reads nothing but its arguments and never changes them.
package diff

import (
	"slices"
	"sort"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"deployer/apply"
	"deployer/apply/compare"
	"deployer/apply/fields"
	"deployer/internal/hide"
)

// A Change is one field that differs. Fields of a subtree that is new, or goes,
// as a whole are one change.
type Change struct {
	// Path is written as package apply writes it:
	// spec.template.spec.containers[name="web"].image
	Path string
	Kind compare.Kind // Added, Removed or Changed
	// Before and After are the values, plain JSON data; nil when absent, or
	// Hidden, also deep inside, where confidential values stood.
	Before, After any
	// Secret says that the values are hidden.
	Secret bool
	// Server marks what the desired object doesn't have: a default, or the doing of
	// an admission webhook.
	Server bool
	// Random marks what changes only because the Variation says that it comes out
	// otherwise each time.
	Random bool
	// Revision is the latest one that declared the field, of one that is removed;
	// 0 when none that is stored did.
	Revision int
}

// Fields lists what a change makes of an object's fields. What is added is shown
// without the defaults that the server filled in. A nil Variation is that of an
// object that always comes out the same.
func Fields(c apply.Change, v *Variation) []Change {
	w := &walker{
		partial: c.Result == nil || c.Action == apply.Recreate, known: c.Desired != nil,
		hidden: hide.Of(c.Live, c.Result, c.Desired), variation: v,
	}
	for _, f := range c.Fields {
		w.change(f, c.Desired)
	}
	return w.out
}

type walker struct {
	partial   bool // what is absent after isn't removed, and quantities may be written otherwise
	known     bool // what is desired
	hidden    hide.Fields
	variation *Variation
	out       []Change
}

func (w *walker) change(f apply.FieldChange, desired *unstructured.Unstructured) {
	var stated any
	if desired != nil {
		stated, _ = fields.Value(desired.Object, f.Path)
	}
	switch f.Kind {
	case compare.Added:
		w.add(f.Path, f.After, stated)
	case compare.Removed:
		w.emit(Change{Kind: compare.Removed, Before: f.Before, Revision: f.Revision}, f.Path)
	case compare.Reordered:
		w.emit(Change{Kind: compare.Changed, Before: f.Before, After: f.After}, f.Path)
	default:
		w.value(f.Path, f.Before, f.After, stated)
	}
}

// value compares what both sides have at a path. Nil is absent.
func (w *walker) value(path fieldpath.Path, before, after, stated any) {
	switch {
	case before == nil && after == nil:
		return
	case before == nil:
		w.add(path, after, stated)
		return
	case after == nil:
		if !w.partial {
			w.emit(Change{Kind: compare.Removed, Before: before}, path)
		}
		return
	}
	bm, bok := before.(map[string]any)
	am, aok := after.(map[string]any)
	if bok && aok {
		w.maps(path, bm, am, stated)
		return
	}
	bl, bok := before.([]any)
	al, aok := after.([]any)
	if bok && aok {
		w.lists(path, bl, al, stated)
		return
	}
	if !equal(before, after) && !(w.partial && compare.SameQuantity(fields.Names(path), before, after)) {
		w.emit(Change{Kind: compare.Changed, Before: before, After: after, Server: w.known && stated == nil}, path)
	}
}

func (w *walker) maps(path fieldpath.Path, before, after map[string]any, stated any) {
	wanted, _ := stated.(map[string]any)
	for _, key := range keysOf(before, after) {
		w.value(below(path, fieldpath.FieldNameElement(key)), before[key], after[key], wanted[key])
	}
}

func below(path fieldpath.Path, e fieldpath.PathElement) fieldpath.Path {
	return append(slices.Clip(path), e)
}

// add tells of something new, without what the server added to it.
func (w *walker) add(path fieldpath.Path, after, stated any) {
	c := Change{Kind: compare.Added, After: after}
	if w.known {
		c.Server = stated == nil
		if stated != nil {
			c.After = pruned(after, stated)
		}
	}
	w.emit(c, path)
}

// emit hides what has to be hidden.
func (w *walker) emit(c Change, path fieldpath.Path) {
	c.Path, c.Random = fields.String(path), w.variation.explains(path, c)
	if w.hidden.Any() {
		names := fields.Names(path)
		c.Before, c.After = masked(w.hidden, names, c.Before), masked(w.hidden, names, c.After)
		c.Secret = hasHidden(c.Before) || hasHidden(c.After)
	}
	w.out = append(w.out, c)
}

// Stated is what a server made of the fields that were asked for; what was asked
// for when it didn't answer.
func Stated(result, asked *unstructured.Unstructured) *unstructured.Unstructured {
	if result == nil || asked == nil {
		return asked
	}
	out, _ := pruned(result.Object, asked.Object).(map[string]any)
	return &unstructured.Unstructured{Object: out}
}

// pruned returns those parts of v that stated names too.
func pruned(v, stated any) any {
	switch v := v.(type) {
	case map[string]any:
		wanted, ok := stated.(map[string]any)
		if !ok {
			return v
		}
		out := map[string]any{}
		for key, value := range v {
			if w := wanted[key]; w != nil {
				out[key] = pruned(value, w)
			}
		}
		return out
	case []any:
		wanted, ok := stated.([]any)
		if !ok || len(wanted) != len(v) {
			return v
		}
		out := make([]any, len(v))
		for i := range v {
			out[i] = pruned(v[i], wanted[i])
		}
		return out
	}
	return v
}

func keysOf(a, b map[string]any) []string {
	keys := make([]string, 0, len(a)+len(b))
	for key := range a {
		keys = append(keys, key)
	}
	for key := range b {
		if _, twice := a[key]; !twice {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	return keys
}
