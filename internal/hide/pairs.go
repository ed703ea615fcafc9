package hide

import (
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// HidePair hides confidential texts in two values of one field, such as before and after a
// change; nil or an empty text means absent. If the values contain different confidential texts, everything that
// differs between them is hidden: after a password was changed, only one of the two may be known.
func (t *Texts) HidePair(a, b any) (any, any) {
	x, y := t.HideValue(a), t.HideValue(b)
	if a == nil || b == nil || a == "" || b == "" {
		return x, y
	}
	if a, ok := a.(map[string]any); ok {
		if b, ok := b.(map[string]any); ok {
			return t.hideMaps(a, b)
		}
	}
	_, ofA := t.hide(written(a))
	_, ofB := t.hide(written(b))
	if slices.Equal(ofA, ofB) {
		return x, y
	}
	switch x := x.(type) {
	case []any:
		if y, ok := y.([]any); ok {
			return hideUnshared(x, y), hideUnshared(y, x)
		}
	case string:
		if y, ok := y.(string); ok && strings.Contains(x+y, "\n") {
			linesX, linesY := strings.Split(x, "\n"), strings.Split(y, "\n")
			return strings.Join(hideUnshared(linesX, linesY), "\n"), strings.Join(hideUnshared(linesY, linesX), "\n")
		}
	}
	return Placeholder, Placeholder
}

// HideTextPair is HidePair for two texts.
func (t *Texts) HideTextPair(a, b string) (string, string) {
	x, y := t.HidePair(a, b)
	return x.(string), y.(string)
}

func (t *Texts) hideMaps(a, b map[string]any) (any, any) {
	x, y := map[string]any{}, map[string]any{}
	for key := range sets.KeySet(a).Union(sets.KeySet(b)) {
		v, w := t.HidePair(a[key], b[key])
		if _, has := a[key]; has {
			x[key] = v
		}
		if _, has := b[key]; has {
			y[key] = w
		}
	}
	return x, y
}

// hideUnshared returns a list with Placeholder in place of the items that the other list doesn't have.
func hideUnshared[T any](list, other []T) []T {
	shared := map[string]bool{}
	for _, item := range other {
		shared[written(item)] = true
	}
	out := slices.Clone(list)
	for i, item := range list {
		if !shared[written(item)] {
			out[i] = any(Placeholder).(T)
		}
	}
	return out
}

// written is a value as text.
func written(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	data, _ := json.Marshal(v)
	return string(data)
}
