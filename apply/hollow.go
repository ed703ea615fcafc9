package apply

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// emptied finds what the chart states as empty and what was all ours. An apply
// leaves null there, which a schema refuses and which means something else, so
// these fields are emptied before it; then the prediction is made again.
// sigs.k8s.io/structured-merge-diff typed/remove.go
func (c *comparison) emptied(live *unstructured.Unstructured) ([]operation, error) {
	next := bare(live).DeepCopy()
	if !empty(c.want.Object, c.predicted.Object, next.Object) {
		return nil, nil
	}
	var ops []operation
	for key, v := range next.Object {
		if key != "metadata" && !reflect.DeepEqual(v, live.Object[key]) {
			ops = append(ops, operation{"replace", "/" + pointer.Replace(key), v})
		}
	}
	from, err := typedOf(c.conv, next)
	if err != nil {
		return nil, err
	}
	return ops, c.predict(from)
}

// empty empties what want has empty and predicted lost, and tells whether there
// is any. Items of lists are found by their names.
func empty(want, predicted, live any) bool {
	found := false
	switch w := want.(type) {
	case map[string]any:
		p, _ := predicted.(map[string]any)
		l, _ := live.(map[string]any)
		for key, v := range w {
			if p[key] == nil && isEmpty(v) && l[key] != nil {
				l[key], found = v, true
			} else {
				found = empty(v, p[key], l[key]) || found
			}
		}
	case []any:
		p, _ := predicted.([]any)
		l, _ := live.([]any)
		for _, item := range w {
			found = empty(item, named(item, p), named(item, l)) || found
		}
	}
	return found
}

func isEmpty(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}
