package fields

import (
	"fmt"
	"strconv"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"deployer/internal/lazyregexp"
)

// A Query is a path as people type it: as String writes it, or with less.
// Items of lists are named by any of their keys ([name=app]), by their value
// ([=x]) or by their place ([0]); keys with dots in quotes, in brackets
// (["a.b/c"]), or with a backslash before each dot.
type Query []element

// An element is one name, key or index of a query.
type element struct {
	name string            // of a field, or the value of an item
	keys map[string]string // of an item; nil for others
	at   int               // the place of an item; -1 for others
}

var (
	queryStep = lazyregexp.New(`^\.?(?:("(?:[^"\\]|\\.)*")|((?:[^.\[\]\\"]|\\.)+)|\[((?:[^\]"']|"(?:[^"\\]|\\.)*"|'[^']*')+)\])`)
	escaped   = lazyregexp.New(`\\(.)`)
	queryKey  = lazyregexp.New(`^\s*([\w.-]*)=("(?:[^"\\]|\\.)*"|'[^']*'|[^,"']*)(?:,|$)`)
)

// ParseQuery reads a path. A leading dot says nothing.
func ParseQuery(text string) (Query, error) {
	var out Query
	for rest := text; rest != "" && rest != "."; {
		m := queryStep().FindStringSubmatch(rest)
		if m == nil {
			return nil, fmt.Errorf("%q is not the path of a field: at %q; write .spec.containers[name=app].image, or metadata.labels[\"example.com/a\"]", text, rest)
		}
		s := element{name: escaped().ReplaceAllString(m[2], "$1"), at: -1}
		switch {
		case m[1] != "":
			s.name = unquoted(m[1])
		case m[3] != "":
			var err error
			if s, err = bracketed(m[3]); err != nil {
				return nil, fmt.Errorf("%q is not the path of a field: %w", text, err)
			}
		}
		out, rest = append(out, s), rest[len(m[0]):]
	}
	return out, nil
}

// bracketed reads what stands in brackets.
func bracketed(text string) (element, error) {
	if n, err := strconv.Atoi(text); err == nil && n >= 0 {
		return element{at: n}, nil
	}
	s := element{at: -1, keys: map[string]string{}}
	for rest := text; rest != ""; {
		m := queryKey().FindStringSubmatch(rest)
		if m == nil && rest == text {
			return element{name: unquoted(text), at: -1}, nil
		}
		if m == nil {
			return s, fmt.Errorf("[%s] is neither an index nor the keys of an item", text)
		}
		if m[1] == "" { // [="x"] is the item with that value
			return element{name: unquoted(m[2]), at: -1}, nil
		}
		s.keys[m[1]], rest = unquoted(m[2]), rest[len(m[0]):]
	}
	return s, nil
}

func unquoted(text string) string {
	if out, err := strconv.Unquote(text); err == nil {
		return out
	}
	return strings.Trim(text, "'")
}

// MatchedElements returns how many elements of the query, from the first on, a path of obj matches: all of
// them if the path is that of the query, below it, or that of an atomic value that contains it.
func (q Query) MatchedElements(obj any, path fieldpath.Path) int {
	for i, e := range path {
		if i == len(q) || !q[i].fits(obj, e) {
			return i
		}
		obj, _ = child(obj, e)
	}
	for i := len(path); i < len(q); i++ {
		var ok bool
		if obj, ok = q[i].in(obj); !ok {
			return i
		}
	}
	return len(q)
}

// fits reports whether an element of a query names an element of the path to something in parent.
func (s element) fits(parent any, e fieldpath.PathElement) bool {
	list, _ := parent.([]any)
	switch {
	case e.FieldName != nil:
		return s.keys == nil && s.at < 0 && *e.FieldName == s.name
	case s.at >= 0:
		return Index(list, e) == s.at
	case s.keys != nil && e.Key != nil:
		item := map[string]any{}
		for _, f := range *e.Key {
			item[f.Name] = f.Value.Unstructured()
		}
		return s.describes(item)
	case e.Value != nil:
		return s.keys == nil && Scalar((*e.Value).Unstructured()) == s.name
	}
	return false
}

// in follows an element within an atomic value.
func (s element) in(v any) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		found, ok := v[s.name]
		return found, ok && s.keys == nil && s.at < 0
	case []any:
		for i, item := range v {
			if i == s.at || s.keys != nil && s.describes(item) || s.keys == nil && s.at < 0 && Scalar(item) == s.name {
				return item, true
			}
		}
	}
	return nil, false
}

func (s element) describes(item any) bool {
	m, ok := item.(map[string]any)
	for name, text := range s.keys {
		if v, has := m[name]; !has || Scalar(v) != text {
			return false
		}
	}
	return ok
}
