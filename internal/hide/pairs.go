package hide

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// HidePair hides confidential texts in two values of one field, such as before and after a
// change; nil means absent. If the values contain different confidential texts, everything that
// differs between them is hidden: after a password was changed, only one of the two may be known.
func (t *Texts) HidePair(a, b any) (any, any) {
	if t == nil || a == nil || b == nil {
		return t.HideValue(a), t.HideValue(b)
	}
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			return t.hideMaps(x, y)
		}
	case []any:
		if y, ok := b.([]any); ok {
			return t.hideLists(x, y)
		}
	case string:
		if y, ok := b.(string); ok {
			x, y = t.hideStrings(x, y)
			return x, y
		}
	}
	if len(t.hiddenIn(a)) == 0 && len(t.hiddenIn(b)) == 0 {
		return a, b
	}
	return Placeholder, Placeholder
}

// HideTextPair is HidePair for two texts; an empty one is absent.
func (t *Texts) HideTextPair(a, b string) (string, string) {
	if a == "" || b == "" {
		return t.Hide(a), t.Hide(b)
	}
	return t.hideStrings(a, b)
}

func (t *Texts) hideStrings(a, b string) (string, string) {
	x, fromA := t.hide(a)
	y, fromB := t.hide(b)
	switch {
	case slices.Equal(fromA, fromB):
		return x, y
	case strings.Contains(a, "\n") || strings.Contains(b, "\n"):
		linesOfA, linesOfB := strings.Split(x, "\n"), strings.Split(y, "\n")
		line := func(l string) string { return l }
		return strings.Join(hideUnshared(linesOfA, linesOfB, Placeholder, line), "\n"),
			strings.Join(hideUnshared(linesOfB, linesOfA, Placeholder, line), "\n")
	}
	return Placeholder, Placeholder
}

// hideUnshared returns a list with hidden in place of the items that the other list doesn't have. Items are the same if
// they are written alike.
func hideUnshared[T any](list, other []T, hidden T, written func(T) string) []T {
	shared := map[string]bool{}
	for _, item := range other {
		shared[written(item)] = true
	}
	out := slices.Clone(list)
	for i, item := range list {
		if !shared[written(item)] {
			out[i] = hidden
		}
	}
	return out
}

func (t *Texts) hideMaps(a, b map[string]any) (any, any) {
	x, y := map[string]any{}, map[string]any{}
	for key, v := range a {
		if other, ok := b[key]; ok {
			x[key], y[key] = t.HidePair(v, other)
		} else {
			x[key] = t.HideValue(v)
		}
	}
	for key, v := range b {
		if _, ok := a[key]; !ok {
			y[key] = t.HideValue(v)
		}
	}
	return x, y
}

// hideLists hides the items that only one of two lists has, unless both contain the same
// confidential texts.
func (t *Texts) hideLists(a, b []any) (any, any) {
	x, y := t.HideValue(a).([]any), t.HideValue(b).([]any)
	if slices.Equal(t.hiddenIn(a), t.hiddenIn(b)) {
		return x, y
	}
	return hideUnshared(x, y, any(Placeholder), written), hideUnshared(y, x, any(Placeholder), written)
}

// written is an item as JSON.
func written(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return Placeholder
	}
	return string(data)
}

// hiddenIn returns the confidential texts in JSON data.
func (t *Texts) hiddenIn(v any) []string {
	var found []string
	switch v := v.(type) {
	case string:
		_, found = t.hide(v)
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			found = append(found, t.hiddenIn(v[key])...)
		}
	case []any:
		for _, item := range v {
			found = append(found, t.hiddenIn(item)...)
		}
	default:
		if hidden, ok := t.hideNumber(v).(string); ok {
			found = append(found, hidden)
		}
	}
	return found
}
