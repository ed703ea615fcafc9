package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"deployer/apply"
	"deployer/apply/ordering"
	"deployer/internal/view/diff"
	"deployer/internal/view/textfmt"
)

// A planLine is one line about an object, of the text, Markdown and HTML of a
// plan alike. It is free of control characters.
type planLine struct {
	Sign byte // '+' '-' '~' of fields, '?' of remarks, ' ' of context
	Text string
}

// maxInline is how long a value may be to stand on the line of its path.
const maxInline = 100

// details lists what there is to say about an object below its name.
func (o planObject) details(opts PlanOptions, created bool) []planLine {
	var out []planLine
	remark := func(format string, args ...any) {
		out = append(out, planLine{'?', textfmt.Line(fmt.Sprintf(format, args...))})
	}
	for _, n := range o.After {
		remark("after %s", n)
	}
	if o.Weight != nil {
		remark("weight %d", *o.Weight)
	}
	if o.Impact != "" {
		remark("%s", o.Impact)
	}
	if o.Unverified != "" {
		remark("not verified: %s", o.Unverified)
	}
	for _, g := range o.Generated {
		out = append(out, planLine{' ', textfmt.Line(g.String())})
	}
	contested := map[string][]planConflict{}
	for _, c := range o.Conflicts {
		contested[c.Path] = append(contested[c.Path], c)
	}
	for _, f := range o.Fields {
		out = append(out, f.lines(opts.Context)...)
		for _, c := range contested[f.Path] {
			out = append(out, planLine{'?', "  " + textfmt.Line(c.fate())})
		}
		delete(contested, f.Path)
	}
	for _, c := range o.Conflicts {
		if len(contested[c.Path]) > 0 {
			remark("%s", c)
		}
	}
	if len(o.TakenFrom) > 0 {
		remark("fields of %s become the release's, their values stay", textfmt.List(textfmt.Quoted(o.TakenFrom)))
	}
	if created && o.Action == string(apply.Create) {
		out = append(out, o.manifest()...)
	}
	return out
}

// String says what somebody waits for.
func (n planNeed) String() string {
	words := map[string]string{string(ordering.Ready): " is ready", string(ordering.Present): " is there", string(ordering.Gone): " is gone"}
	text := n.Object + words[n.State]
	if n.Outside {
		text += " (not of this release)"
	}
	return text
}

// String tells of a contested field: what it is now, what it becomes, whose it
// is since when.
func (c planConflict) String() string {
	if c.CollidesWith != "" {
		words := map[apply.Outcome]string{apply.Taken: "goes for the chart's %s", apply.Yielded: "stays, and the chart's %s isn't sent", apply.Refused: "can't be together with the chart's %s"}
		return fmt.Sprintf("%s: %s "+words[apply.Outcome(c.Outcome)]+", %s", c.Path, c.Before, c.CollidesWith, c.fate())
	}
	switch apply.Outcome(c.Outcome) {
	case apply.Yielded:
		return fmt.Sprintf("%s stays %s, %s; the chart says %s", c.Path, c.Before, c.fate(), c.After)
	case apply.Refused:
		return fmt.Sprintf("%s is %s; the chart says %s: %s", c.Path, c.Before, c.After, c.fate())
	}
	return fmt.Sprintf("%s: %s -> %s, %s", c.Path, c.Before, c.After, c.fate())
}

// fate says whose a contested field is, and what becomes of that.
func (c planConflict) fate() string {
	who := strconv.Quote(c.Manager)
	var more []string
	for _, s := range []string{c.Operation, c.Subresource} {
		if s != "" {
			more = append(more, s)
		}
	}
	if c.Since != "" {
		more = append(more, "since "+c.Since)
	}
	if len(more) > 0 {
		who += " (" + strings.Join(more, ", ") + ")"
	}
	switch apply.Outcome(c.Outcome) {
	case apply.Yielded:
		return "left to " + who
	case apply.Refused:
		return "refused, it belongs to " + who
	}
	return "taken from " + who
}

// lines tells of one field.
func (f planField) lines(context int) []planLine {
	path := textfmt.Line(f.Path)
	note := ""
	if f.Revision > 0 {
		note = fmt.Sprintf("   (from revision %d)", f.Revision)
	}
	if f.Server {
		note += "   (by the server)"
	}
	if f.Random {
		note += "   (random)"
	}
	switch {
	case f.Random && multiline(f.Before) && multiline(f.After):
		return []planLine{{'~', path + ": other text each time" + note}}
	case f.Hidden && f.Kind == string(diff.Changed):
		return []planLine{{'~', path + ": changed (value hidden)" + note}}
	case f.Hidden:
		return []planLine{{signs[f.Kind], path + ": " + f.Kind + " (value hidden)" + note}}
	case f.Kind == string(diff.Added):
		return valueLines('+', path, f.After, note)
	case f.Kind == string(diff.Removed) && f.Before == nil:
		return []planLine{{'-', path + note}}
	case f.Kind == string(diff.Removed):
		return valueLines('-', path, f.Before, note)
	}
	return changedLines(path, f.Before, f.After, note, context)
}

var signs = map[string]byte{string(diff.Added): '+', string(diff.Removed): '-', string(diff.Changed): '~'}

func changedLines(path string, before, after any, note string, context int) []planLine {
	old, isText := before.(string)
	now, alsoText := after.(string)
	if isText && alsoText && (multiline(old) || multiline(now)) {
		out := []planLine{{'~', path + ":" + note}}
		for _, l := range diff.Unified(old, now, context) {
			sign, text := l[0], l[1:]
			if l == "..." {
				sign, text = ' ', l
			}
			out = append(out, planLine{sign, "    " + textfmt.Visible(text)})
		}
		return out
	}
	a, b := inline(before), inline(after)
	if len(a)+len(b) <= 2*maxInline {
		return []planLine{{'~', path + ": " + a + " -> " + b + note}}
	}
	out := []planLine{{'~', path + ":" + note}}
	return append(append(out, below('-', before)...), below('+', after)...)
}

// multiline tells whether a value is text of several lines.
func multiline(v any) bool {
	text, ok := v.(string)
	return ok && strings.Contains(text, "\n")
}

// valueLines writes a value behind its path, or below it when it is long.
func valueLines(sign byte, path string, v any, note string) []planLine {
	if one := inline(v); len(one) <= maxInline && !multiline(v) {
		return []planLine{{sign, path + ": " + one + note}}
	}
	return append([]planLine{{sign, path + ":" + note}}, below(sign, v)...)
}

// below writes a value as lines of YAML, text as it is.
func below(sign byte, v any) []planLine {
	text, ok := v.(string)
	if !ok {
		data, err := yaml.Marshal(v)
		if err != nil {
			data = []byte(inline(v))
		}
		text = string(data)
	} else if !strings.Contains(text, "\n") {
		text = strconv.Quote(text)
	}
	var out []planLine
	for _, l := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		out = append(out, planLine{sign, "    " + textfmt.Visible(l)})
	}
	return out
}

// inline writes a value on one line, in quotes when it is text.
func inline(v any) string {
	if s, ok := v.(string); ok {
		return strconv.Quote(s)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "(unreadable)"
	}
	return textfmt.Line(b.String())
}

// manifest writes a new object out, without what its name says already.
func (o planObject) manifest() []planLine {
	shown := map[string]any{}
	for key, v := range o.Manifest {
		switch key {
		case "apiVersion", "kind":
			continue
		case "metadata":
			if v = ownMetadata(v); v == nil {
				continue
			}
		}
		shown[key] = v
	}
	if len(shown) == 0 {
		return nil
	}
	lines := below('+', shown)
	for i := range lines {
		lines[i].Text = strings.TrimPrefix(lines[i].Text, "    ")
	}
	return lines
}

// ownMetadata is what a chart's author wrote of an object's metadata, besides the
// name: without what says which release it belongs to, which all objects have.
// Nil when nothing is left.
func ownMetadata(v any) any {
	metadata, _ := v.(map[string]any)
	out := map[string]any{}
	for name, value := range metadata {
		entries, isMap := value.(map[string]any)
		switch {
		case name == "name" || name == "namespace":
			continue
		case !isMap:
			out[name] = value
			continue
		}
		kept := map[string]any{}
		for key, text := range entries {
			if !strings.HasPrefix(key, "meta.helm.sh/release-name") && !(key == "app.kubernetes.io/managed-by" && text == "Helm") {
				kept[key] = text
			}
		}
		if len(kept) > 0 {
			out[name] = kept
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
