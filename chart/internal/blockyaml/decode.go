// Package blockyaml decodes the YAML that generators of manifests and definitions write, in a fraction of the time that
// the YAML library takes.
package blockyaml

import (
	"strings"
	"unicode/utf8"
)

// Decode decodes a document of mappings and sequences in block style, with plain keys, plain and quoted scalars,
// literal block scalars, and collections in flow style on one line. It isn't ok for anything else, such as anchors,
// tags, comments behind values, repeated keys and errors: the library (go.yaml.in/yaml/v2) decides about it. The types
// are those of ToJSONTypes.
func Decode(text string) (content map[string]any, ok bool) {
	if !strings.HasSuffix(text, "\n") || !isPlainText(text) {
		return nil, false
	}
	r := &blockReader{rest: text, texts: map[string]string{}}
	r.next()
	content, ok = r.mapping(0, 0)
	return content, ok && !r.more && len(content) > 0
}

// isPlainText reports whether a text has only characters that the library takes as they are.
func isPlainText(text string) bool {
	for i := 0; i < len(text); {
		if b := text[i]; b < utf8.RuneSelf {
			if b < ' ' && b != '\n' && b != '\t' || b == 0x7f {
				return false
			}
			i++
			continue
		}
		c, size := utf8.DecodeRuneInString(text[i:])
		if c == utf8.RuneError || c < 0xa0 || c == '\u2028' || c == '\u2029' || c == '\ufeff' || c > 0xfffd {
			return false
		}
		i += size
	}
	return true
}

// maxBlockDepth is far more than any manifest has.
const maxBlockDepth = 100

// A blockReader reads a text line by line.
type blockReader struct {
	rest   string // after the line
	indent int    // of the line
	line   string // without indentation and spaces at the end; not empty
	more   bool   // there is a line
	tab    bool   // the line has a tab
	texts  map[string]string
}

// next goes on to the next line that has more than a comment.
func (r *blockReader) next() {
	for r.rest != "" {
		var line string
		line, r.rest, _ = strings.Cut(r.rest, "\n")
		line = strings.TrimRight(line, " ")
		r.line = strings.TrimLeft(line, " ")
		if r.line == "" || r.line[0] == '#' {
			continue
		}
		r.indent, r.more, r.tab = len(line)-len(r.line), true, strings.Contains(r.line, "\t")
		return
	}
	r.more = false
}

// own is a copy of a part of the text, which doesn't keep all of it in memory. Those that come again
// share one.
func (r *blockReader) own(text string) string {
	if known, ok := r.texts[text]; ok {
		return known
	}
	text = strings.Clone(text)
	if len(text) <= 32 {
		r.texts[text] = text
	}
	return text
}

// mapping reads the entries with an indentation.
func (r *blockReader) mapping(indent, depth int) (map[string]any, bool) {
	if depth > maxBlockDepth {
		return nil, false
	}
	out := map[string]any{}
	for r.more && r.indent == indent {
		key, value, ok := splitEntry(r.line)
		if _, repeated := out[key]; !ok || repeated || r.tab {
			return nil, false
		}
		key = r.own(key)
		if out[key], ok = r.value(value, indent, depth); !ok {
			return nil, false
		}
	}
	return out, !r.more || r.indent < indent
}

// sequence reads the items with an indentation.
func (r *blockReader) sequence(indent, depth int) ([]any, bool) {
	if depth > maxBlockDepth {
		return nil, false
	}
	out := []any{}
	for r.more && r.indent == indent && strings.HasPrefix(r.line, "- ") {
		item := strings.TrimLeft(r.line[1:], " ")
		var value any
		_, _, ok := splitEntry(item)
		switch {
		case ok:
			r.indent += len(r.line) - len(item)
			r.line = item
			value, ok = r.mapping(r.indent, depth+1)
		case !r.tab && item != "" && item[0] != '|':
			value, ok = r.value(item, indent, depth)
		}
		if !ok {
			return nil, false
		}
		out = append(out, value)
	}
	return out, !r.more || r.indent <= indent
}

// value reads the rest of an entry, and the lines that belong to it.
func (r *blockReader) value(text string, indent, depth int) (any, bool) {
	if text == "|" || text == "|-" {
		return r.literal(indent, text == "|")
	}
	text, ok := r.fold(text, indent)
	if !ok {
		return nil, false
	}
	r.next()
	deeper := r.more && r.indent > indent
	isSequence := r.more && strings.HasPrefix(r.line, "- ")
	switch {
	case text != "" && deeper: // a flow collection on several lines, or an error
		return nil, false
	case text != "":
		return r.scalar(text)
	case isSequence && r.indent >= indent:
		return r.sequence(r.indent, depth+1)
	case deeper:
		return r.mapping(r.indent, depth+1)
	}
	return nil, !r.more || r.indent < indent || r.line[0] != '-'
}

// fold adds the lines on which a plain or quoted scalar goes on: those that are indented more than its
// entry. A line end is a space, and a blank line a line end. Text with escapes keeps its lines.
func (r *blockReader) fold(text string, parent int) (string, bool) {
	if text == "" || strings.IndexByte("{[>|&*!", text[0]) >= 0 {
		return text, true
	}
	isPlain := text[0] != '\'' && text[0] != '"'
	if isPlain && endsPlain(text) || strings.HasSuffix(text, `\`) {
		return "", false
	}
	lines := []string{text}
	for rest := r.rest; rest != ""; {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		line = strings.TrimRight(line, " ")
		content := strings.TrimLeft(line, " ")
		if content == "" {
			lines = append(lines, "")
			continue
		}
		if len(line)-len(content) <= parent {
			break
		}
		if strings.Contains(content, "\t") || isPlain && (content[0] == '#' || endsPlain(content)) || strings.HasSuffix(content, `\`) {
			return "", false
		}
		lines = append(lines, content)
		r.rest = rest
	}
	for lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return joinFolded(lines), true
}

// joinFolded joins the lines of a scalar.
func joinFolded(lines []string) string {
	if len(lines) == 1 {
		return lines[0]
	}
	if all := strings.Join(lines, "\n "); lines[0][0] == '"' && strings.Contains(all, `\`) {
		return all
	}
	var out strings.Builder
	space := ""
	for _, line := range lines {
		if line == "" {
			out.WriteByte('\n')
			space = ""
			continue
		}
		out.WriteString(space)
		out.WriteString(line)
		space = " "
	}
	return out.String()
}

// endsPlain reports whether a line of a plain scalar has something that ends it.
func endsPlain(line string) bool {
	return strings.Contains(line, ": ") || strings.HasSuffix(line, ":") || strings.Contains(line, " #")
}

// literal reads the lines of a literal block scalar, which are indented more than its entry. It ends with one line
// end or none.
func (r *blockReader) literal(parent int, keepEnd bool) (any, bool) {
	var out strings.Builder
	blank, indent := 0, 0
	for r.rest != "" {
		line, rest, _ := strings.Cut(r.rest, "\n")
		content := strings.TrimLeft(line, " ")
		depth := len(line) - len(content)
		switch {
		case content == "" && (indent == 0 || depth > indent):
			return nil, false
		case content == "":
			blank++
			r.rest = rest
			continue
		case indent == 0 && (depth <= parent || content[0] == '\t'):
			return nil, false
		case indent == 0:
			indent = depth
		case depth < indent && (depth > parent || content[0] == '\t' || content[0] == '#'):
			return nil, false
		}
		if depth < indent {
			break
		}
		out.WriteString(strings.Repeat("\n", blank))
		out.WriteString(line[indent:])
		out.WriteByte('\n')
		blank, r.rest = 0, rest
	}
	r.next()
	text := out.String()
	if !keepEnd {
		text = strings.TrimSuffix(text, "\n")
	}
	return text, indent > 0
}

// ambiguous are words that YAML 1.1 reads as something else than text.
var ambiguous = map[string]bool{"y": true, "yes": true, "on": true, "n": true, "no": true, "off": true, "true": true, "false": true, "null": true}

// isPlainKey reports whether a key needs no quotes and is text, as its first character tells, but for
// ambiguous words.
func isPlainKey(key string) bool {
	if key == "" || len(key) > 200 {
		return false
	}
	for i := range len(key) {
		switch b := key[i]; {
		case b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '_' || b == '$' || b == '/':
		case i > 0 && (b >= '0' && b <= '9' || b == '-' || b == '.'):
		default:
			return false
		}
	}
	return len(key) > 5 || !ambiguous[strings.ToLower(key)]
}

// splitEntry splits the key of an entry from the rest of its line.
func splitEntry(line string) (key, rest string, ok bool) {
	end := strings.IndexByte(line, ':')
	if end < 1 || end+1 < len(line) && line[end+1] != ' ' {
		return "", "", false
	}
	key = line[:end]
	return key, strings.TrimLeft(line[end+1:], " "), isPlainKey(key)
}
