package generated

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"deployer/chart/internal/yamltext"
)

// An edit replaces the value at a path of keys and indexes.
type edit struct {
	path []any
	part part
}

// edited is a value with edits. The value itself isn't changed.
func edited(root any, edits []edit) any {
	for _, e := range edits {
		root = setAt(root, e.path, e.part.value())
	}
	return root
}

// valueAt returns the value at a path of keys and indexes; nil when there is none.
func valueAt(v any, path []any) any {
	for _, step := range path {
		switch s := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[s]
		case int:
			l, _ := v.([]any)
			if s >= len(l) {
				return nil
			}
			v = l[s]
		}
	}
	return v
}

// setAt is a value with another one at a path. The value itself isn't changed: maps and lists on the path are copied.
func setAt(v any, path []any, value any) any {
	if len(path) == 0 {
		return value
	}
	switch at := path[0].(type) {
	case string:
		if m, ok := v.(map[string]any); ok {
			m = maps.Clone(m)
			m[at] = setAt(m[at], path[1:], value)
			return m
		}
	case int:
		if l, ok := v.([]any); ok && at < len(l) {
			l = slices.Clone(l)
			l[at] = setAt(l[at], path[1:], value)
			return l
		}
	}
	return v
}

// editText makes edits in YAML or JSON text and keeps all other bytes. Characters are escaped
// as in the recorded text, if any. It returns false when the result doesn't decode to the
// edited value.
func editText(text string, edits []edit, recorded string, decode func(string) (any, error)) (string, bool) {
	root, err := decode(text)
	if err != nil {
		return text, false
	}
	want := edited(root, edits)
	if reflect.DeepEqual(root, want) {
		return text, true
	}
	for _, quoted := range []bool{false, true} {
		out, ok := splice(text, edits, style{quoted, recorded})
		if !ok {
			continue
		}
		if got, err := decode(out); err == nil && reflect.DeepEqual(got, want) {
			return out, true
		}
	}
	return text, false
}

// A span is a range of text and its replacement.
type span struct {
	from, to int
	text     string
}

// A style says how values are written.
type style struct {
	quoted   bool   // in quotes, also where YAML needs none
	recorded string // text with recorded values, whose escapes are used
}

// splice replaces the scalars at the paths of edits; false if it can't.
func splice(text string, edits []edit, how style) (string, bool) {
	var root yaml.Node
	if yaml.Unmarshal([]byte(text), &root) != nil || len(root.Content) != 1 {
		return "", false
	}
	var spans []span
	for _, e := range edits {
		n := yamltext.NodeAt(root.Content[0], e.path...)
		if n == nil || n.Kind != yaml.ScalarNode || n.Anchor != "" {
			return "", false
		}
		s, ok := scalarSpan(text, n, e.part.value(), how)
		if !ok {
			return "", false
		}
		spans = append(spans, s)
	}
	slices.SortFunc(spans, func(a, b span) int { return b.from - a.from })
	for _, s := range spans {
		text = text[:s.from] + s.text + text[s.to:]
	}
	return text, true
}

// scalarSpan returns the range of a scalar and another value in the scalar's style.
func scalarSpan(text string, n *yaml.Node, value any, how style) (span, bool) {
	from, ok := yamltext.NodeOffset(text, n)
	if !ok {
		return span{}, false
	}
	s, isText := value.(string)
	if !isText {
		s = fmt.Sprint(value)
	}
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		to := yamltext.ClosingQuote(text, from, `"`, `\`)
		return span{from, to + 1, how.doubleQuoted(s)}, to < len(text)
	case n.Style&yaml.SingleQuotedStyle != 0:
		to := yamltext.ClosingQuote(text, from, "'", "''")
		if how.quoted || strings.ContainsAny(s, "\n\r\t") {
			return span{from, to + 1, how.doubleQuoted(s)}, to < len(text)
		}
		return span{from, to + 1, "'" + strings.ReplaceAll(s, "'", "''") + "'"}, to < len(text)
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return blockSpan(text, from, n, s)
	}
	if !strings.HasPrefix(text[from:], n.Value) {
		return span{}, false
	}
	if isText && (how.quoted || s == "" || strings.Contains(s, "\n")) {
		s = how.doubleQuoted(s)
	}
	return span{from, from + len(n.Value), s}, true
}

// doubleQuoted writes text as JSON does. Some encoders escape <, > and & too.
func (how style) doubleQuoted(s string) string {
	escaped, err := json.Marshal(s)
	if err == nil && strings.Contains(how.recorded, string(escaped)) {
		return string(escaped)
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // of text; it can't fail
	return strings.TrimSuffix(b.String(), "\n")
}

// blockSpan returns the range and the replacement of a literal block; false for a folded one.
func blockSpan(text string, from int, n *yaml.Node, value string) (span, bool) {
	if n.Style&yaml.LiteralStyle == 0 {
		return span{}, false
	}
	start := from + strings.IndexByte(text[from:], '\n') + 1
	indent, end := "", start
	for line := range strings.Lines(text[start:]) {
		bare := strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(bare) != "" {
			if indent == "" {
				indent = bare[:len(bare)-len(strings.TrimLeft(bare, " "))]
			}
			if !strings.HasPrefix(bare, indent) {
				break
			}
		}
		end += len(line)
	}
	if start <= from || indent == "" {
		return span{}, false
	}
	block := text[start:end]
	ending := block[len(strings.TrimRight(block, "\r\n")):]
	var out []string
	for _, line := range strings.Split(strings.TrimRight(value, "\n"), "\n") {
		if line != "" {
			line = indent + line
		}
		out = append(out, line)
	}
	return span{start, end, strings.Join(out, "\n") + ending}, true
}
