// Package diff tells, field by field, what makes one Kubernetes object
// different from another.
//
// It is pure: it reads nothing but its arguments and never changes them. What
// servers write into every object is left out, and confidential
// values never leave the package.
package diff

import (
	"sort"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/fields"
	"deployer/internal/hide"
)

// Kind is what happened to a field.
type Kind string

// The kinds of change.
const (
	Added   Kind = "added"
	Removed Kind = "removed"
	Changed Kind = "changed"
)

// A Change is one field that differs. Fields of a subtree that is new, or goes,
// as a whole are one change.
type Change struct {
	// Path is written as package apply writes it:
	// spec.template.spec.containers[name="web"].image
	Path string
	Kind Kind
	// Before and After are the values, plain JSON data; nil when absent, or
	// Hidden, also deep inside, where confidential values stood.
	Before, After any
	// Secret says that the values are hidden.
	Secret bool
	// Server marks what Options.Stated doesn't say: a default, or the doing of
	// an admission webhook.
	Server bool
	// Random marks what changes only because Options.Variation says that it
	// comes out otherwise each time.
	Random bool
}

// Options say how to compare. The zero value compares everything.
type Options struct {
	// Stated is what was asked for. With it, new subtrees are shown without
	// the defaults that the server filled in. Nil means not known.
	Stated *unstructured.Unstructured
	// Partial says that After names only some fields and says nothing about
	// the others, as a manifest does before the server has seen it.
	Partial bool
	// Variation is how After comes out otherwise each time; nil when it doesn't.
	Variation *Variation
}

// Fields lists what differs between two versions of an object, in order of the
// paths. Nil stands for an object without fields. Left out are status,
// metadata that servers write, and annotations that controllers and kubectl
// keep for themselves.
func Fields(before, after *unstructured.Unstructured, o Options) []Change {
	w := &walker{partial: o.Partial, known: o.Stated != nil, hidden: hide.Of(before, after, o.Stated), variation: o.Variation}
	var stated any
	if o.Stated != nil {
		stated = o.Stated.Object
	}
	w.maps(path{}, content(before), content(after), stated)
	return w.out
}

func content(obj *unstructured.Unstructured) map[string]any {
	if obj == nil {
		return nil
	}
	return obj.Object
}

// A path is where the walk stands: as text, and as its field names.
type path struct {
	text  string
	names []string
}

func (p path) field(name string) path {
	text := fields.Name(name)
	if p.text != "" {
		text = p.text + "." + text
	}
	return path{text: text, names: append(p.names[:len(p.names):len(p.names)], name)}
}

func (p path) item(key string) path {
	return path{text: p.text + "[" + key + "]", names: append(p.names[:len(p.names):len(p.names)], "[]")}
}

type walker struct {
	partial, known bool
	hidden         hide.Fields // none for use within the package
	variation      *Variation
	out            []Change
}

// value compares what both sides have at p. Nil is absent.
func (w *walker) value(p path, before, after, stated any) {
	switch {
	case before == nil && after == nil || noise(p, before, after):
		return
	case before == nil:
		w.add(p, after, stated)
		return
	case after == nil:
		if !w.partial {
			w.emit(Change{Path: p.text, Kind: Removed, Before: before}, p)
		}
		return
	}
	bm, bok := before.(map[string]any)
	am, aok := after.(map[string]any)
	if bok && aok {
		w.maps(p, bm, am, stated)
		return
	}
	bl, bok := before.([]any)
	al, aok := after.([]any)
	if bok && aok {
		w.lists(p, bl, al, stated)
		return
	}
	if !equal(before, after) && !(w.partial && sameQuantity(p, before, after)) {
		w.emit(Change{Path: p.text, Kind: Changed, Before: before, After: after, Server: w.known && stated == nil}, p)
	}
}

func (w *walker) maps(p path, before, after map[string]any, stated any) {
	wanted, _ := stated.(map[string]any)
	for _, key := range keysOf(before, after) {
		w.value(p.field(key), before[key], after[key], wanted[key])
	}
}

// add tells of something new, without what the server added to it.
func (w *walker) add(p path, after, stated any) {
	c := Change{Path: p.text, Kind: Added, After: after}
	if w.known {
		c.Server = stated == nil
		if stated != nil {
			c.After = pruned(after, stated)
		}
	}
	w.emit(c, p)
}

// emit hides what has to be hidden.
func (w *walker) emit(c Change, p path) {
	c.Random = w.variation.explains(p, c)
	if w.hidden.Any() {
		c.Before, c.After = masked(w.hidden, p.names, c.Before), masked(w.hidden, p.names, c.After)
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
