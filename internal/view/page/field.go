package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"deployer/apply/compare"
	"deployer/apply/ownership"
	"deployer/internal/lazyregexp"
	"deployer/internal/view/diff"
	"deployer/internal/view/textfmt"
)

// maxInline is how long a value may be to stand on the line of its path.
const maxInline = 100

// FieldLines returns the lines of a field change, with as many unchanged lines around each changed
// line of a text of several lines.
func FieldLines(f diff.Field, context int) []Line {
	path, note := f.Path, ""
	if f.Revision > 0 {
		note = fmt.Sprintf("   (from revision %d)", f.Revision)
	}
	if f.ByServer {
		note += "   (by the server)"
	}
	if len(f.Follows) > 0 {
		note += "   (follows " + textfmt.List(f.Follows) + ")"
	}
	if f.Random {
		note += "   (random)"
	}
	switch {
	case f.Random && multiline(f.Before) && multiline(f.After):
		return []Line{{'~', path + ": different text each time" + note}}
	case f.Hidden && f.Type == compare.Changed:
		return []Line{{'~', path + ": changed (hidden)" + note}}
	case f.Hidden:
		return []Line{{signOfType[f.Type], path + ": " + string(f.Type) + " (hidden)" + note}}
	case f.Type == compare.Added:
		return ValueLines('+', path, f.After, note)
	case f.Type == compare.Removed && f.Before == nil:
		return []Line{{'-', path + note}}
	case f.Type == compare.Removed:
		return ValueLines('-', path, f.Before, note)
	}
	return changedLines(path, shortChecksum(f.Before), shortChecksum(f.After), note, context)
}

// checksum matches what templates write by sha256sum or sha1sum.
var checksum = lazyregexp.New(`^[0-9a-f]{40,128}$`)

// shortChecksum returns the first digits of a checksum, and anything else as it is.
func shortChecksum(v any) any {
	if text, ok := v.(string); ok && checksum().MatchString(text) {
		return text[:12]
	}
	return v
}

var signOfType = map[compare.ChangeType]byte{compare.Added: '+', compare.Removed: '-', compare.Changed: '~'}

func changedLines(path string, before, after any, note string, context int) []Line {
	old, isText := before.(string)
	now, alsoText := after.(string)
	if isText && alsoText && (multiline(old) || multiline(now)) {
		out := []Line{{'~', path + ":" + note}}
		for _, l := range diff.Unified(old, now, context) {
			sign, text := l[0], l[1:]
			if l == "..." {
				sign, text = ' ', l
			}
			out = append(out, Line{sign, "    " + text})
		}
		return out
	}
	a, b := Inline(before), Inline(after)
	if len(a)+len(b) <= 2*maxInline {
		return []Line{{'~', path + ": " + a + " -> " + b + note}}
	}
	out := []Line{{'~', path + ":" + note}}
	return append(append(out, ValueBlock('-', before)...), ValueBlock('+', after)...)
}

// multiline reports whether a value is text of several lines.
func multiline(v any) bool {
	text, ok := v.(string)
	return ok && strings.Contains(text, "\n")
}

// ValueLines writes a value behind its path, or below it when it is long.
func ValueLines(sign byte, path string, v any, note string) []Line {
	if one := Inline(v); len(one) <= maxInline && !multiline(v) {
		return []Line{{sign, path + ": " + one + note}}
	}
	return append([]Line{{sign, path + ":" + note}}, ValueBlock(sign, v)...)
}

// ValueBlock writes a value as lines of YAML, text as it is.
func ValueBlock(sign byte, v any) []Line {
	text, ok := v.(string)
	if !ok {
		data, err := yaml.Marshal(v)
		if err != nil {
			data = []byte(Inline(v))
		}
		text = string(data)
	} else if !strings.Contains(text, "\n") {
		text = strconv.Quote(text)
	}
	var out []Line
	for _, l := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		out = append(out, Line{sign, "    " + l})
	}
	return out
}

// Inline writes a value on one line, in quotes when it is text.
func Inline(v any) string {
	if s, ok := v.(string); ok {
		return strconv.Quote(s)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "(unreadable)"
	}
	return textfmt.CleanLine(b.String())
}

// ManagerText adds to the name of a field manager how it has written, and since when.
func ManagerText(name string, w ownership.FieldManager) string {
	since := ""
	if !w.Time.IsZero() {
		since = "since " + Timestamp(w.Time)
	}
	return textfmt.WithNotes(name, string(w.Operation), w.Subresource, since)
}
