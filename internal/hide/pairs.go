package hide

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// HidePair hides confidential texts in two values of one field, such as before and after a
// change; nil or an empty text means absent. If the values contain different confidential texts, everything that
// differs between them is hidden: after a password was changed, only one of the two may be known.
func (t *Texts) HidePair(a, b any) (any, any) {
	x, y := t.HideValue(a), t.HideValue(b)
	if t == nil || a == nil || b == nil || a == "" || b == "" {
		return x, y
	}
	if a, ok := a.(map[string]any); ok {
		if b, ok := b.(map[string]any); ok {
			x, y := maps.Clone(a), maps.Clone(b)
			for key := range a {
				if x[key], y[key] = t.HidePair(a[key], b[key]); b[key] == nil {
					delete(y, key)
				}
			}
			for key := range b {
				if a[key] == nil {
					y[key] = t.HideValue(b[key])
				}
			}
			return x, y
		}
	}
	_, ofA := t.hide(written(a))
	_, ofB := t.hide(written(b))
	if slices.Equal(ofA, ofB) {
		return x, y
	}
	if reflect.DeepEqual(x, y) { // that they differ must be seen
		return Placeholder, Placeholder
	}
	switch x := x.(type) {
	case []any:
		if y, ok := y.([]any); ok {
			return hideUnshared(x, y), hideUnshared(y, x)
		}
	case string:
		if y, ok := y.(string); ok && strings.Contains(x+y, "\n") {
			linesOfX, linesOfY := strings.Split(x, "\n"), strings.Split(y, "\n")
			return strings.Join(hideUnshared(linesOfX, linesOfY), "\n"), strings.Join(hideUnshared(linesOfY, linesOfX), "\n")
		}
	}
	return Placeholder, Placeholder
}

// HideTextPair is HidePair for two texts.
func (t *Texts) HideTextPair(a, b string) (string, string) {
	x, y := t.HidePair(a, b)
	return x.(string), y.(string)
}

// hideUnshared returns a list with Placeholder in place of the items that the other list doesn't have.
func hideUnshared[T any](list, other []T) []T {
	isShared := map[string]bool{}
	for _, item := range other {
		isShared[written(item)] = true
	}
	out := slices.Clone(list)
	for i, item := range list {
		if !isShared[written(item)] {
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
