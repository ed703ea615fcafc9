package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"deployer/apply/compare"
	"deployer/internal/hide"
	"deployer/internal/view/diff"
	"deployer/internal/view/textfmt"
)

// maxInline is how long a value may be to stand on the line of its path.
const maxInline = 100

// Lines returns the lines of a field change.
func (f Field) Lines(context int) []Line {
	path := textfmt.CleanLine(f.Path)
	note := ""
	if f.Revision > 0 {
		note = fmt.Sprintf("   (from revision %d)", f.Revision)
	}
	if f.ByServer {
		note += "   (by the server)"
	}
	if f.Random {
		note += "   (random)"
	}
	switch {
	case f.Random && multiline(f.Before) && multiline(f.After):
		return []Line{{'~', path + ": different text each time" + note}}
	case f.Hidden && f.Kind == compare.Changed:
		return []Line{{'~', path + ": changed (hidden)" + note}}
	case f.Hidden:
		return []Line{{signOfKind[f.Kind], path + ": " + string(f.Kind) + " (hidden)" + note}}
	case f.Kind == compare.Added:
		return ValueLines('+', path, f.After, note)
	case f.Kind == compare.Removed && f.Before == nil:
		return []Line{{'-', path + note}}
	case f.Kind == compare.Removed:
		return ValueLines('-', path, f.Before, note)
	}
	return changedLines(path, f.Before, f.After, note, context)
}

var signOfKind = map[compare.Kind]byte{compare.Added: '+', compare.Removed: '-', compare.Changed: '~'}

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
			out = append(out, Line{sign, "    " + textfmt.CleanIndentedLine(text)})
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
		out = append(out, Line{sign, "    " + textfmt.CleanIndentedLine(l)})
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

// A Field is a field that changes.
type Field struct {
	Path     string       `json:"path"`
	Kind     compare.Kind `json:"kind"` // added, removed or changed
	Before   any          `json:"before,omitempty"`
	After    any          `json:"after,omitempty"`
	Hidden   bool         `json:"hidden,omitempty"`        // a Secret's value: before and after are left out
	ByServer bool         `json:"by_server,omitempty"`     // not stated by the chart
	Random   bool         `json:"random,omitempty"`        // changes only because the template makes the value up
	Revision int          `json:"from_revision,omitempty"` // removed: the latest revision that had it
}

// WithoutHidden returns the field without confidential texts in its values and its path.
func (f Field) WithoutHidden(hidden *hide.Texts) Field {
	f.Path = hide.Fields{}.HidePath(f.Path, hidden)
	if f.Before, f.After = hidden.HidePair(f.Before, f.After); f.Before == hide.Placeholder && f.After == hide.Placeholder {
		f.Before, f.After, f.Hidden = nil, nil, true
	}
	return f
}

// HidePair returns two values of one field as they may be shown; true means that neither may,
// because one is confidential.
func HidePair(secret hide.Fields, hidden *hide.Texts, names []string, a, b any) (any, any, bool) {
	a, hiddenA := diff.Mask(secret, names, a)
	b, hiddenB := diff.Mask(secret, names, b)
	if hiddenA || hiddenB {
		return nil, nil, true
	}
	if a, b = hidden.HidePair(a, b); a == hide.Placeholder && b == hide.Placeholder {
		return nil, nil, true
	}
	return a, b, false
}
