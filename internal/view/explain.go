package view

import (
	"fmt"
	"io"
	"strings"

	"deployer/apply"
	"deployer/internal/deploy"
	"deployer/internal/hide"
	"deployer/internal/view/diff"
	"deployer/internal/view/output"
	"deployer/internal/view/textfmt"
)

// An explanation is who has made an object what it is, as all formats show it.
// Its JSON is a promise, see docs/json.md. No confidential value is in it.
type explanation struct {
	Format     int              `json:"format"`
	Document   string           `json:"document"` // "explanation"
	Release    string           `json:"release"`
	Namespace  string           `json:"namespace"`
	Chart      string           `json:"chart,omitempty"`
	Revision   int              `json:"revision"`
	Object     string           `json:"object"`
	Group      string           `json:"group"`
	Source     string           `json:"source,omitempty"`
	State      string           `json:"state"` // there, or as in a drift
	Reason     string           `json:"reason,omitempty"`
	Unverified string           `json:"unverified,omitempty"`
	Fields     []explainedField `json:"fields"`
}

type explainedField struct {
	Path     string         `json:"path"`
	Value    any            `json:"value,omitempty"`
	Hidden   bool           `json:"hidden,omitempty"`
	Owners   []*driftWriter `json:"owners"`
	Revision int            `json:"revision,omitempty"`
	Earlier  bool           `json:"or_earlier,omitempty"`
	Source   string         `json:"source,omitempty"`
	Upgrade  string         `json:"upgrade"`
	Becomes  any            `json:"becomes,omitempty"`
	// Generated says that the template generates the value.
	Generated bool `json:"generated,omitempty"`
	KeptFrom  int  `json:"kept_from_revision,omitempty"`

	has, becomes bool
}

// Explanation writes who has made an object what it is.
func Explanation(s output.Streams, e *deploy.Explanation, o PlanOptions) error {
	d := newExplanation(e)
	if o.Format != output.FormatTable && o.Format != "" {
		return output.Encode(s.Out, o.Format, d)
	}
	var b strings.Builder
	d.text(&b, s.Palette(o.Colour, s.OutTTY))
	return s.WriteText(b.String(), o.Env)
}

func newExplanation(e *deploy.Explanation) explanation {
	o := e.Object
	d := explanation{
		Format: output.JSONVersion, Document: "explanation", Release: e.Release, Namespace: e.Namespace, Chart: chartOf(e.Record),
		Revision: e.Record.Version, Object: o.ID.String(), Group: o.ID.Group, Source: o.Source, State: string(o.State),
		Reason: e.Hidden.Hide(o.Reason), Unverified: e.Hidden.Hide(o.Unverified), Fields: []explainedField{},
	}
	if o.State == apply.Changed {
		d.State = "there"
	}
	secret := hide.Of(o.Live, o.Want)
	for _, f := range e.Fields {
		field := explainedOf(f, secret, e.Hidden)
		for _, v := range e.Generated {
			if v.Path == f.Path {
				field.Generated, field.KeptFrom = true, v.Revision
			}
		}
		d.Fields = append(d.Fields, field)
	}
	return d
}

func explainedOf(f apply.FieldExplained, secret hide.Fields, hidden *hide.Texts) explainedField {
	out := explainedField{
		Path: f.Path, Revision: f.Revision, Earlier: f.Earlier, Source: f.Source, Upgrade: string(f.Outcome),
		Owners: []*driftWriter{}, has: f.Has, becomes: f.WillHave,
	}
	for _, w := range f.Owners {
		out.Owners = append(out.Owners, writerOf(w))
	}
	out.Value, out.Becomes, out.Hidden = shown(secret, hidden, f.Names, f.Is, f.Will)
	return out
}

// upgradeWords say what an upgrade makes of a field, and the signs of that.
var upgradeWords = map[string]struct {
	sign  byte
	words string
}{
	string(apply.Kept):    {'=', "an upgrade keeps it"},
	string(apply.Set):     {'~', "an upgrade sets it"},
	string(apply.Taken):   {'~', "an upgrade takes it"},
	string(apply.Yielded): {'=', "an upgrade leaves it to its owner, whatever the chart says"},
	string(apply.Refused): {'!', "an upgrade is refused because of it"},
	string(apply.Dropped): {'-', "an upgrade removes it"},
	string(apply.Ignored): {' ', "the release doesn't state it, an upgrade leaves it"},
}

// heading says who owns a field, which revision has stated it, and what becomes
// of it.
func (f explainedField) heading() heading {
	owners := "nobody"
	var names []string
	for _, w := range f.Owners {
		names = append(names, w.String())
	}
	switch {
	case !f.has:
		owners = "not there"
	case len(names) > 0:
		owners = textfmt.List(names)
	}
	words := upgradeWords[f.Upgrade]
	since := ""
	switch {
	case f.Earlier:
		since = fmt.Sprintf("since revision %d or earlier; ", f.Revision)
	case f.Revision > 0:
		since = fmt.Sprintf("since revision %d; ", f.Revision)
	}
	switch {
	case f.KeptFrom > 0:
		since += fmt.Sprintf("generated; kept from revision %d; ", f.KeptFrom)
	case f.Generated:
		since += "generated; "
	}
	return heading{sign: words.sign, name: textfmt.Line(owners), words: since + words.words, source: textfmt.Line(f.Source)}
}

// lines tells of the value, and of what it would become.
func (f explainedField) lines() []planLine {
	shown := planField{Path: f.Path, Kind: string(diff.Changed), Before: f.Value, After: f.Becomes, Hidden: f.Hidden}
	switch {
	case f.Hidden:
		return []planLine{{' ', textfmt.Line(f.Path) + ": (value hidden)"}}
	case f.Upgrade == string(apply.Dropped):
		shown.Kind = string(diff.Removed)
	case !f.has:
		shown.Kind = string(diff.Added)
	case !f.becomes:
		return valueLines(' ', textfmt.Line(f.Path), f.Value, "")
	case f.Upgrade == string(apply.Yielded), f.Upgrade == string(apply.Refused):
		return valueLines(' ', textfmt.Line(f.Path), f.Value, "   (the chart says "+inline(f.Becomes)+")")
	}
	return shown.lines(3)
}

func (d explanation) text(w io.Writer, p output.Palette) {
	title := heading{sign: ' ', name: textfmt.Line(d.Object), words: fmt.Sprintf("of %s in %s, revision %d", d.Release, d.Namespace, d.Revision), source: textfmt.Line(d.Source)}
	if d.Chart != "" {
		title.words += ", chart " + textfmt.Line(d.Chart)
	}
	blockText(w, p, painter(p), title, d.remarks())
	type group struct {
		heading
		lines []planLine
	}
	var groups []*group
	at := map[heading]*group{}
	for _, f := range d.Fields {
		h := f.heading()
		if at[h] == nil {
			at[h] = &group{heading: h}
			groups = append(groups, at[h])
		}
		at[h].lines = append(at[h].lines, f.lines()...)
	}
	for _, g := range groups {
		fmt.Fprintln(w)
		blockText(w, p, painter(p), g.heading, g.lines)
	}
}

// remarks are what there is to say about the object as a whole.
func (d explanation) remarks() []planLine {
	var out []planLine
	if d.Reason != "" {
		out = append(out, planLine{'?', textfmt.Line(d.Reason)})
	}
	if d.State == string(apply.Missing) {
		out = append(out, planLine{'?', "an upgrade creates it"})
	}
	if d.Unverified != "" {
		out = append(out, planLine{'?', textfmt.Line("not verified: " + d.Unverified)})
	}
	return out
}
