package fields

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// Equal reports whether two values are the same as JSON: 1 and 1.0 are.
func Equal(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && string(x) == string(y)
}

// ValueText writes a value as JSON on one line, cut to a readable length.
func ValueText(v any, ok bool) string {
	const most = 200
	if !ok {
		return "(absent)"
	}
	data, err := json.Marshal(v)
	if err != nil {
		return "(unreadable)"
	}
	if len(data) > most {
		return strings.ToValidUTF8(string(data[:most]), "") + "..."
	}
	return string(data)
}

// Scalar writes a value as people type it: a text without quotes, anything else
// as JSON.
func Scalar(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	data, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(data)
}

// AsString is a value that is a string; empty for any other.
func AsString(v any) string {
	s, _ := v.(string)
	return s
}

// ItemName is the name of a list item that has one, such as a container or a variable; empty for
// any other.
func ItemName(item any) string {
	m, _ := item.(map[string]any)
	return AsString(m["name"])
}

// UsesVariable reports whether the value of an environment variable refers to the variable of a
// name. The kubelet takes the value that the variable has at that place of the list.
func UsesVariable(item any, name string) bool {
	m, _ := item.(map[string]any)
	return strings.Contains(AsString(m["value"]), "$("+name+")")
}

// quantities are the fields of built-in kinds whose values are quantities, such as 500m or 2Gi.
var quantities = map[string]bool{"limits": true, "requests": true, "capacity": true, "hard": true, "min": true, "max": true, "default": true, "defaultRequest": true}

// IsQuantity reports whether the field at a path is a quantity in the built-in kinds. The server writes quantities in its own way.
func IsQuantity(names []string) bool {
	last := len(names) - 1
	return last >= 1 && (quantities[names[last-1]] || names[last] == "sizeLimit")
}

// IsEmpty reports whether a value says nothing that its absence wouldn't: servers leave such values out.
func IsEmpty(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, value := range v {
			if !IsEmpty(value) {
				return false
			}
		}
		return true
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool { return !IsEmpty(item) })
	}
	return v == nil || v == false || v == "" || v == int64(0) || v == float64(0)
}
