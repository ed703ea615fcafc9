package generated

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// recorded is the object of the revision whose generated values count, and the
// revision's number; nil when there is none. That is the last successful revision,
// unless a later one has written other values into the live object: what is there
// counts when a release wrote it.
func (k *keeper) recorded(o *object, again []any) (*object, int) {
	var base *object
	number := 0
	var later []int
	for i, r := range k.in.Past {
		found := k.past[i][k.key(o.id)]
		switch {
		case r.Successful:
			base, number, later = found, r.Number, nil
		case found != nil:
			later = append(later, i)
		}
	}
	paths := differing(nil, o.content, again)
	var live *unstructured.Unstructured
	read := false
	for _, i := range slices.Backward(later) {
		found := k.past[i][k.key(o.id)]
		if base != nil && agree(paths, found, base.content) {
			continue // nothing that differs
		}
		if !read {
			live, read = k.live(o), true
		}
		if live == nil {
			continue
		}
		if base != nil && agree(paths, base, live.Object) {
			return base, number
		}
		if agree(paths, found, live.Object) {
			return found, k.in.Past[i].Number
		}
	}
	return base, number
}

// live reads an object; nil when it isn't there or can't be read, which planning
// tells.
func (k *keeper) live(o *object) *unstructured.Unstructured {
	if k.in.Live == nil {
		return nil
	}
	id := o.id
	if id.Namespace == "" && !clusterScoped[id.Kind] {
		id.Namespace = k.in.Namespace
	}
	live, err := k.in.Live(id)
	if err != nil {
		k.warns = append(k.warns, "what is generated in "+id.String()+" is compared with its last successful revision only: "+err.Error())
		return nil
	}
	return live
}

// differing lists the paths of what is generated in a value.
func differing(path []any, a any, again []any) [][]any {
	if same(a, again) {
		return nil
	}
	m, ok := a.(map[string]any)
	if !ok {
		return [][]any{path}
	}
	var out [][]any
	for key, v := range m {
		var others []any
		for _, other := range again {
			o, _ := other.(map[string]any)
			others = append(others, o[key])
		}
		out = append(out, differing(append(path[:len(path):len(path)], key), v, others)...)
	}
	return out
}

// agree tells whether a recorded object has the same at all paths as another one,
// and anything there at all.
func agree(paths [][]any, recorded *object, other map[string]any) bool {
	found := false
	for _, path := range paths {
		if inPodTemplate(path) {
			continue // they say when pods restarted, not what is kept
		}
		a, b := fieldOf(recorded.content, path), fieldOf(other, path)
		if a == nil {
			continue
		}
		if !contains(b, a) {
			return false
		}
		found = true
	}
	return found
}

// contains tells whether a live value is the recorded one; in maps and lists the
// server may have added defaults.
func contains(live, recorded any) bool {
	switch r := recorded.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		for key, v := range r {
			ok = ok && contains(l[key], v)
		}
		return ok
	case []any:
		l, ok := live.([]any)
		ok = ok && len(l) == len(r)
		for i := 0; ok && i < len(r); i++ {
			ok = contains(l[i], r[i])
		}
		return ok
	}
	return reflect.DeepEqual(plainNumber(live), plainNumber(recorded))
}

// fieldOf is at, with a Secret's stringData as data.
func fieldOf(content map[string]any, path []any) any {
	if content["kind"] == "Secret" && len(path) >= 2 && (path[0] == "stringData" || path[0] == "data") {
		key, _ := path[1].(string)
		if v, ok := mapAt(content, "stringData")[key].(string); ok {
			return v
		}
		if v, ok := mapAt(content, "data")[key].(string); ok {
			if plain, err := base64.StdEncoding.DecodeString(v); err == nil {
				return string(plain)
			}
		}
		return nil
	}
	return at(content, path)
}

// plainNumber writes numbers alike, however they were read.
func plainNumber(v any) any {
	switch v.(type) {
	case string, bool, nil:
		return v
	}
	return fmt.Sprint(v)
}
