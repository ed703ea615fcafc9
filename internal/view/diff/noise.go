package diff

import (
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"

	"deployer/apply/fields"
	"deployer/internal/kube"
)

// noise tells what people don't want to read about.
func noise(p path, before, after any) bool {
	n := p.names
	if len(n) == 2 && n[0] == "metadata" && n[1] == "annotations" {
		return onlyBookkeeping(p, before) && onlyBookkeeping(p, after)
	}
	return kube.IsBookkeeping(n)
}

// onlyBookkeeping tells whether annotations have nothing in them to show.
func onlyBookkeeping(p path, annotations any) bool {
	m, ok := annotations.(map[string]any)
	if !ok {
		return annotations == nil
	}
	for key := range m {
		if !kube.IsBookkeeping(p.field(key).names) {
			return false
		}
	}
	return true
}

// quantities are the fields whose values the server writes in its own way.
var quantities = map[string]bool{"limits": true, "requests": true, "capacity": true, "hard": true, "min": true, "max": true, "default": true, "defaultRequest": true}

// sameQuantity tells whether two texts mean the same amount: 1000m is 1.
func sameQuantity(p path, before, after any) bool {
	n := p.names
	if len(n) < 2 || !quantities[n[len(n)-2]] && n[len(n)-1] != "sizeLimit" {
		return false
	}
	b, err := resource.ParseQuantity(fields.Scalar(before))
	if err != nil {
		return false
	}
	a, err := resource.ParseQuantity(fields.Scalar(after))
	return err == nil && a.Cmp(b) == 0
}

// equal compares JSON data; a number is one however it was decoded.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok {
			return false
		}
		for _, key := range keysOf(a, b) {
			if !equal(a[key], b[key]) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !equal(a[i], b[i]) {
				return false
			}
		}
		return true
	}
	if reflect.DeepEqual(a, b) {
		return true
	}
	x, ok := number(a)
	y, also := number(b)
	return ok && also && x == y
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case int32:
		return float64(v), true
	case int64:
		return float64(v), true
	case float64:
		return v, true
	case json.Number:
		f, err := v.Float64()
		return f, err == nil
	}
	return 0, false
}
