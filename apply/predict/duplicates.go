package predict

import "k8s.io/apimachinery/pkg/runtime"

// RestoreDuplicates copies into onto the lists that have duplicates in full, which once is without them.
func RestoreDuplicates(full, once, onto any) {
	switch f := full.(type) {
	case map[string]any:
		o, ok1 := once.(map[string]any)
		to, ok2 := onto.(map[string]any)
		if !ok1 || !ok2 {
			return
		}
		for key, v := range f {
			list, isList := v.([]any)
			single, _ := o[key].([]any)
			if isList && len(list) != len(single) {
				to[key] = runtime.DeepCopyJSONValue(list)
				continue
			}
			RestoreDuplicates(v, o[key], to[key])
		}
	case []any:
		o, ok1 := once.([]any)
		to, ok2 := onto.([]any)
		if !ok1 || !ok2 {
			return
		}
		for i, v := range f {
			at := itemNamed(v, to)
			if at == nil && len(to) == len(f) {
				at = to[i]
			}
			RestoreDuplicates(v, o[i], at)
		}
	}
}
