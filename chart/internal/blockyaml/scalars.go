package blockyaml

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v2"

	"deployer/chart/internal/yamltext"
	"deployer/internal/lazyregexp"
)

// scalar reads a value whose lines are folded. A plain one has nothing that ends it, see fold.
func (r *blockReader) scalar(text string) (any, bool) {
	switch first := text[0]; {
	case first == '"' || first == '\'':
		return r.quoted(text)
	case first == '{' || first == '[':
		f := &flowReader{blockReader: r, rest: text}
		value, ok := f.value(0)
		return value, ok && f.rest == ""
	}
	return r.plain(text)
}

// quoted reads text in quotes. The library reads escapes; a single quote is doubled.
func (r *blockReader) quoted(text string) (any, bool) {
	inner := text[1:]
	if inner == "" || inner[len(inner)-1] != text[0] {
		return nil, false
	}
	inner = inner[:len(inner)-1]
	if text[0] == '"' && strings.Contains(inner, `\`) {
		var value any
		err := yaml.Unmarshal([]byte(text), &value)
		unquoted, ok := value.(string)
		return unquoted, ok && err == nil && yamltext.ClosingQuote(text, 0, `"`, `\`) == len(text)-1 // the library ignores what comes after it
	}
	if text[0] == '"' {
		return r.own(inner), !strings.Contains(inner, `"`)
	}
	if strings.Contains(strings.ReplaceAll(inner, "''", ""), "'") {
		return nil, false
	}
	return r.own(strings.ReplaceAll(inner, "''", "'")), true
}

// mayBeNumber is a word that begins as numbers, times and such do.
var mayBeNumber = lazyregexp.New(`^(-?[0-9]|\.[A-Za-z])[^\n]{0,100}$`)

// plain reads a plain scalar. The library tells which words are numbers.
func (r *blockReader) plain(text string) (any, bool) {
	switch b := text[0]; {
	case b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= utf8.RuneSelf || strings.IndexByte("_/$^(=", b) >= 0:
		switch {
		case len(text) > 5 || !ambiguous[strings.ToLower(text)]:
			return r.own(text), true
		case text == "true":
			return true, true
		case text == "false":
			return false, true
		}
	case text == "0" || b >= '1' && b <= '9' && len(text) < 16 && strings.Trim(text, "0123456789") == "":
		n, err := strconv.ParseInt(text, 10, 64)
		return n, err == nil
	case mayBeNumber().MatchString(text):
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			return nil, false
		}
		value, err := ToJSONTypes(value)
		return value, err == nil
	}
	return nil, false
}

// A flowReader reads a collection in flow style that is on one line.
type flowReader struct {
	*blockReader
	rest string
}

// skip drops spaces and reports whether a character comes then, which it drops too.
func (f *flowReader) skip(b byte) bool {
	f.rest = strings.TrimLeft(f.rest, " ")
	if f.rest == "" || f.rest[0] != b {
		return false
	}
	f.rest = strings.TrimLeft(f.rest[1:], " ")
	return true
}

func (f *flowReader) value(depth int) (any, bool) {
	switch {
	case depth > maxBlockDepth:
		return nil, false
	case f.skip('{'):
		return f.mapping(depth)
	case f.skip('['):
		return f.sequence(depth)
	}
	text := f.token()
	if text == "" {
		return nil, false
	}
	if text[0] == '"' || text[0] == '\'' {
		return f.quoted(text)
	}
	return f.plain(text)
}

// token takes a quoted text, or a word.
func (f *flowReader) token() string {
	end := strings.IndexAny(f.rest, ` ,:{}[]"'`)
	if end == 0 && (f.rest[0] == '"' || f.rest[0] == '\'') {
		end = strings.IndexByte(f.rest[1:], f.rest[0]) + 2
	}
	if end < 1 {
		return ""
	}
	text := f.rest[:end]
	f.rest = f.rest[end:]
	return text
}

func (f *flowReader) mapping(depth int) (any, bool) {
	out := map[string]any{}
	for !f.skip('}') {
		if len(out) > 0 && !f.skip(',') {
			return nil, false
		}
		key, _, ok := splitEntry(f.token() + ":")
		if _, repeated := out[key]; !ok || repeated || !strings.HasPrefix(f.rest, ": ") {
			return nil, false
		}
		f.skip(':')
		if out[f.own(key)], ok = f.value(depth + 1); !ok {
			return nil, false
		}
	}
	return out, true
}

func (f *flowReader) sequence(depth int) (any, bool) {
	out := []any{}
	for !f.skip(']') {
		if len(out) > 0 && !f.skip(',') {
			return nil, false
		}
		value, ok := f.value(depth + 1)
		if !ok {
			return nil, false
		}
		out = append(out, value)
	}
	return out, true
}
