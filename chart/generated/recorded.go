package generated

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// recordedObject returns the recorded object whose generated values are kept, and its revision;
// nil if there is none. It is that of the last successful revision, unless the live object has
// the values of a later revision.
func (d *decider) recordedObject(o *object, v versions[any]) (*object, int) {
	var base *object
	number := 0
	var later []int
	for i, r := range d.in.Earlier {
		found := d.earlier[i][d.objectKey(o.id)]
		switch {
		case r.Successful:
			base, number, later = found, r.Number, nil
		case found != nil:
			later = append(later, i)
		}
	}
	paths := generatedPaths(nil, v)
	var live *unstructured.Unstructured
	read := false
	for _, i := range slices.Backward(later) {
		found := d.earlier[i][d.objectKey(o.id)]
		if base != nil && agreeAt(paths, found, base.content) {
			continue // its generated values are the same
		}
		if !read {
			live, read = d.liveObject(o), true
		}
		if live == nil {
			continue
		}
		if base != nil && agreeAt(paths, base, live.Object) {
			return base, number
		}
		if agreeAt(paths, found, live.Object) {
			return found, d.in.Earlier[i].Number
		}
	}
	return base, number
}

// liveObject reads an object; nil when it doesn't exist or can't be read. A read error is a
// warning.
func (d *decider) liveObject(o *object) *unstructured.Unstructured {
	if d.in.Live == nil {
		return nil
	}
	id := d.idOf(o)
	live, err := d.in.Live(id)
	if err != nil {
		d.result.Warnings = append(d.result.Warnings, "what is generated in "+id.String()+" is compared with its last successful revision only: "+err.Error())
		return nil
	}
	return live
}

// generatedPaths lists the paths of the values that differ between renderings.
func generatedPaths(path []any, v versions[any]) [][]any {
	if v.isStable() {
		return nil
	}
	fields, ok := v.rendered.(map[string]any)
	if !ok {
		return [][]any{path}
	}
	var out [][]any
	for key := range fields {
		field := versions[any]{rendered: fields[key]}
		for _, other := range v.rerendered {
			o, _ := other.(map[string]any)
			field.rerendered = append(field.rerendered, o[key])
		}
		out = append(out, generatedPaths(append(path[:len(path):len(path)], key), field)...)
	}
	return out
}

// agreeAt reports whether a recorded object has the same values at all paths as another one,
// and at least one value.
func agreeAt(paths [][]any, recorded *object, other map[string]any) bool {
	found := false
	for _, path := range paths {
		if isPodTemplateAnnotation(path) {
			continue // these annotations only restart pods
		}
		a, b := fieldOf(recorded.content, path), fieldOf(other, path)
		if a == nil {
			continue
		}
		if !containsValue(b, a) {
			return false
		}
		found = true
	}
	return found
}

// containsValue reports whether a live value is the recorded one; in maps and lists the
// server may have added defaults.
func containsValue(live, recorded any) bool {
	switch r := recorded.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		for key, v := range r {
			ok = ok && containsValue(l[key], v)
		}
		return ok
	case []any:
		l, ok := live.([]any)
		ok = ok && len(l) == len(r)
		for i := 0; ok && i < len(r); i++ {
			ok = containsValue(l[i], r[i])
		}
		return ok
	}
	return reflect.DeepEqual(normalizedNumber(live), normalizedNumber(recorded))
}

// normalizedNumber writes numbers alike, however they were read.
func normalizedNumber(v any) any {
	switch v.(type) {
	case string, bool, nil:
		return v
	}
	return fmt.Sprint(v)
}
