package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/yaml"

	"deployer/apply/builtin"
	"deployer/apply/fields"
)

// normaliseValue normalises v, which is at path and of the referred type, in place.
func (n *normaliser) normaliseValue(path string, v any, ref schema.TypeRef) {
	atom, ok := n.rules.Type.Schema.Resolve(ref)
	if !ok {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		if atom.Map != nil {
			if builtin.Is(ref, builtin.PodSpec) {
				setBothServiceAccountNames(v)
			}
			n.normaliseMap(path, v, atom.Map)
			stateDefaultMembers(v, builtin.UnionsOf(ref))
		} else if atom.Scalar != nil || atom.List != nil {
			n.addProblem(path, "is a map, should be %s", kindOf(atom))
		}
	case []any:
		if atom.List == nil {
			n.addProblem(path, "is a list, should be %s", kindOf(atom))
		} else {
			n.normaliseItems(path, v, atom.List)
		}
	default:
		n.checkScalar(path, v, atom)
	}
}

// stateDefaultMembers states the member of a union that the API server would set. Nobody would own it, so it would stay
// when the chart states another one later.
func stateDefaultMembers(v map[string]any, unions []builtin.Union) {
	for _, u := range unions {
		if u.Default != "" && len(u.MembersOf(v)) == 0 {
			v[u.Default] = map[string]any{}
		}
	}
}

func (n *normaliser) checkScalar(path string, v any, atom schema.Atom) {
	if v == nil {
		return
	}
	if atom.Scalar == nil {
		if atom.Map != nil || atom.List != nil {
			n.addProblem(path, "is a %s, should be %s", typeName(v), kindOf(atom))
		}
		return
	}
	expected := *atom.Scalar
	if got := typeName(v); expected != schema.Untyped && expected != schema.Scalar(got) {
		n.SchemaMismatch = true
		repair := ""
		switch {
		case meansWithoutQuotes(v, expected):
			repair = ": remove the quotes in the template"
		case expected == schema.String && got != "map" && got != "list":
			repair = ": quote it in the template"
		}
		n.addProblem(path, "is a %s, should be a %s%s", plain(got), plain(string(expected)), repair)
	}
}

// meansWithoutQuotes reports whether a value is a text that YAML would read as the expected type
// if it weren't quoted.
func meansWithoutQuotes(v any, expected schema.Scalar) bool {
	text, ok := v.(string)
	var read any
	return ok && yaml.Unmarshal([]byte(text), &read) == nil && expected == schema.Scalar(typeName(read))
}

// isUntyped reports whether a type accepts any value, so that a null may mean something.
func isUntyped(a schema.Atom) bool {
	return a.Scalar != nil && *a.Scalar == schema.Untyped && a.Map != nil && a.List != nil
}

func (n *normaliser) normaliseMap(path string, m map[string]any, t *schema.Map) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		at := fields.Join(path, key)
		ref, known := FieldType(t, key)
		if !known {
			n.dropUnknownField(at, m, key)
			continue
		}
		if m[key] == nil && n.dropNull(at, m, key, ref, t) {
			continue
		}
		n.normaliseValue(at, m[key], ref)
		if list, ok := m[key].([]any); ok {
			m[key] = n.dropDuplicates(at, list, ref)
		}
	}
}

// FieldType returns the type of a field of a structure, or of a key of a map; false when there can be no such.
func FieldType(t *schema.Map, key string) (schema.TypeRef, bool) {
	if f, ok := t.FindField(key); ok {
		return f.Type, true
	}
	none := t.ElementType.NamedType == nil && t.ElementType.Inlined == (schema.Atom{})
	return t.ElementType, !none
}

func (n *normaliser) dropUnknownField(at string, m map[string]any, key string) {
	n.SchemaMismatch = true
	switch n.rules.UnknownFields {
	case Refuse:
		n.addProblem(at, "is a field this kind doesn't have")
	case Drop:
		n.addNote(at, "is a field this kind doesn't have: not sent")
	}
	delete(m, key)
}

// dropNull drops a field without a value, as the API server does when it decodes a
// POST; it reports whether it did. A map of strings keeps its key, with "".
func (n *normaliser) dropNull(at string, m map[string]any, key string, ref schema.TypeRef, t *schema.Map) bool {
	atom, ok := n.rules.Type.Schema.Resolve(ref)
	if !ok || ref.Nullable || isUntyped(atom) {
		return false
	}
	_, named := t.FindField(key)
	if !named && atom.Scalar != nil && *atom.Scalar == schema.String {
		m[key] = ""
		n.addNote(at, "has no value: sent as an empty string")
		return true
	}
	delete(m, key)
	return true
}

func (n *normaliser) normaliseItems(path string, list []any, t *schema.List) {
	for i, item := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		if item == nil {
			if atom, ok := n.rules.Type.Schema.Resolve(t.ElementType); ok && !isUntyped(atom) && !t.ElementType.Nullable {
				n.addProblem(at, "is empty: a list item without a value")
			}
			continue
		}
		if t.ElementRelationship == schema.Associative && len(t.Keys) > 0 {
			n.defaultKeys(at, item, t)
		}
		n.normaliseValue(at, item, t.ElementType)
	}
}

// defaultKeys adds the default values of missing key fields, such as protocol: TCP. An item
// without any of its keys is a problem.
func (n *normaliser) defaultKeys(at string, item any, t *schema.List) {
	m, ok := item.(map[string]any)
	if !ok {
		return
	}
	atom, ok := n.rules.Type.Schema.Resolve(t.ElementType)
	if !ok || atom.Map == nil {
		return
	}
	found := 0
	for _, key := range t.Keys {
		if v, has := m[key]; !has || v == nil {
			f, ok := atom.Map.FindField(key)
			if !ok || slices.Contains([]any{nil, "", 0, int64(0), 0.0}, f.Default) {
				if !builtin.Is(t.ElementType, builtin.LocalObjectReference) {
					continue
				}
				delete(m, key) // a reference to no Secret, which the API server accepts
				found++
				continue
			}
			m[key] = f.Default
		}
		found++
	}
	if found == 0 {
		n.addProblem(at, "has no %s", strings.Join(t.Keys, " or "))
	}
}

func kindOf(a schema.Atom) string {
	switch {
	case a.Map != nil:
		return "a map"
	case a.List != nil:
		return "a list"
	case a.Scalar != nil:
		return "a " + plain(string(*a.Scalar))
	}
	return "something else"
}

func plain(scalar string) string {
	if scalar == string(schema.Numeric) {
		return "number"
	}
	return scalar
}

func typeName(v any) string {
	switch v.(type) {
	case string:
		return string(schema.String)
	case bool:
		return string(schema.Boolean)
	case int, int32, int64, float64:
		return string(schema.Numeric)
	case map[string]any:
		return "map"
	case []any:
		return "list"
	}
	return "value"
}
