package inspection

import (
	"fmt"
	"strings"

	"deployer/apply/compare"
	"deployer/apply/decide"
	"deployer/apply/inspect"
	"deployer/apply/ownership"
	"deployer/internal/deploy"
	"deployer/internal/hide"
	"deployer/internal/view/diff"
	"deployer/internal/view/output"
	"deployer/internal/view/page"
	"deployer/internal/view/textfmt"
)

// An explanation says who set the fields of an object, as all formats show it.
// Its JSON is a promise, see docs/json.md. No confidential value is in it.
type explanation struct {
	Format   int    `json:"format"`
	Document string `json:"document"` // "explanation"
	page.Subject
	Object     string           `json:"object"`
	Group      string           `json:"group"`
	Source     string           `json:"source,omitempty"`
	State      string           `json:"state"` // there, or as in a drift
	Reason     string           `json:"reason,omitempty"`
	Unverified string           `json:"unverified,omitempty"`
	Fields     []explainedField `json:"fields"`
}

type explainedField struct {
	Path     string                   `json:"path"`
	Value    any                      `json:"value,omitempty"`
	Hidden   bool                     `json:"hidden,omitempty"`
	Owners   []ownership.FieldManager `json:"owners"`
	Revision int                      `json:"revision,omitempty"`
	Earlier  bool                     `json:"or_earlier,omitempty"`
	Source   string                   `json:"source,omitempty"`
	Upgrade  decide.FieldOutcome      `json:"upgrade"`
	Becomes  any                      `json:"becomes,omitempty"`
	// Generated says that the template generates the value.
	Generated bool `json:"generated,omitempty"`
	KeptFrom  int  `json:"kept_from_revision,omitempty"`

	has, becomes     bool
	policyAnnotation string // of the object that decides its conflicts, whatever --conflicts says; empty for none
}

// ShowExplanation writes who set the fields of an object.
func ShowExplanation(s output.Streams, e *deploy.Explanation, o page.Options) error {
	d := newExplanation(e)
	if o.Format != output.FormatTable && o.Format != "" {
		return output.Encode(s.Out, o.Format, d)
	}
	return page.Write(s, o, d.text(s.OutPalette(o.Colour)))
}

func newExplanation(e *deploy.Explanation) explanation {
	o := e.Object
	d := explanation{
		Format: output.JSONVersion, Document: "explanation", Subject: page.SubjectAt(e.Release, e.Namespace, e.Place, e.Record),
		Object: o.ID.String(), Group: o.ID.Group, Source: o.Source, State: string(o.State),
		Reason: e.Hidden.Hide(o.Reason), Unverified: e.Hidden.Hide(o.Unverified), Fields: []explainedField{},
	}
	if o.State == inspect.DriftChanged {
		d.State = "there"
	}
	secret := hide.ConfidentialFields(o.Live, o.Desired)
	for _, f := range e.Fields {
		field := explainedOf(f, secret, e.Hidden)
		field.policyAnnotation = e.PolicyAnnotation
		for _, v := range e.Generated {
			if v.Path == f.Path {
				field.Generated, field.KeptFrom = true, v.Revision
			}
		}
		d.Fields = append(d.Fields, field)
	}
	return d
}

func explainedOf(f inspect.FieldExplanation, secret hide.Fields, hidden *hide.Texts) explainedField {
	out := explainedField{
		Path: secret.HidePath(f.Path, hidden), Revision: f.Revision, Earlier: f.Earlier, Source: f.Source, Upgrade: f.Outcome,
		Owners: append([]ownership.FieldManager{}, f.Owners...), has: f.HasLive, becomes: f.HasPredicted,
	}
	out.Value, out.Becomes, out.Hidden = diff.ShownPair(secret, hidden, f.Names, f.Live, f.Predicted)
	return out
}

// upgradeWords has the sign and the words for what an upgrade does to a field.
var upgradeWords = map[decide.FieldOutcome]struct {
	sign  byte
	words string
}{
	decide.OutcomeKept:    {'=', "an upgrade keeps it"},
	decide.OutcomeSet:     {'~', "an upgrade sets it"},
	decide.OutcomeTaken:   {'~', "an upgrade takes it, one with --conflicts yield leaves it"},
	decide.OutcomeYielded: {'=', "an upgrade leaves it to its owner"},
	decide.OutcomeRefused: {'!', "an upgrade is refused because of it"},
	decide.OutcomeRemoved: {'-', "an upgrade removes it"},
	decide.OutcomeIgnored: {' ', "not set by the release; an upgrade leaves it"},
}

// heading says who owns a field, since which revision it is declared, and what an upgrade
// does to it.
func (f explainedField) heading() page.Heading {
	owners := "no manager"
	var names []string
	for _, w := range f.Owners {
		names = append(names, page.ManagerText(w.Manager, w))
	}
	switch {
	case !f.has:
		owners = "not in the cluster"
	case len(names) > 0:
		owners = textfmt.List(names)
	}
	words := upgradeWords[f.Upgrade]
	if f.policyAnnotation != "" && f.Upgrade == decide.OutcomeTaken {
		words.words = "an upgrade takes it, as the annotation " + f.policyAnnotation + " says"
	}
	prefix := ""
	switch {
	case f.Earlier:
		prefix = fmt.Sprintf("since revision %d or earlier; ", f.Revision)
	case f.Revision > 0:
		prefix = fmt.Sprintf("since revision %d; ", f.Revision)
	}
	switch {
	case f.KeptFrom > 0:
		prefix += fmt.Sprintf("generated; kept from revision %d; ", f.KeptFrom)
	case f.Generated:
		prefix += "generated; "
	}
	return page.Heading{Sign: words.sign, Name: owners, Words: prefix + words.words, Source: f.Source}
}

// lines are the value, and what it would become.
func (f explainedField) lines() []page.Line {
	shown := diff.Field{Path: f.Path, Type: compare.Changed, Before: f.Value, After: f.Becomes, Hidden: f.Hidden}
	switch {
	case f.Hidden:
		return []page.Line{page.Context("%s: %s", f.Path, hide.Placeholder)}
	case f.Upgrade == decide.OutcomeRemoved:
		shown.Type = compare.Removed
	case !f.has:
		shown.Type = compare.Added
	case !f.becomes:
		return page.ValueLines(' ', f.Path, f.Value, "")
	case f.Upgrade == decide.OutcomeYielded, f.Upgrade == decide.OutcomeRefused:
		return page.ValueLines(' ', f.Path, f.Value, "   (the chart says "+page.Inline(f.Becomes)+")")
	}
	return page.FieldLines(shown, 3)
}

// text has an entry for the object, and one for each group of fields with the same heading.
func (d explanation) text(palette output.Palette) string {
	title := page.Heading{Sign: ' ', Name: d.Object, Words: fmt.Sprintf("of %s in %s, revision %d", d.Release, d.Namespace, d.Revision), Source: d.Source}
	if d.Chart != "" {
		title.Words += ", chart " + d.Chart
	}
	entries := []page.Entry{{Heading: title, Lines: d.remarks()}}
	at := map[page.Heading]int{}
	for _, f := range d.Fields {
		h := f.heading()
		i, known := at[h]
		if !known {
			i = len(entries)
			at[h] = i
			entries = append(entries, page.Entry{Heading: h})
		}
		entries[i].Lines = append(entries[i].Lines, f.lines()...)
	}
	var texts []string
	for _, e := range entries {
		texts = append(texts, e.Text(palette))
	}
	return strings.Join(texts, "\n")
}

// remarks are what there is to say about the object as a whole.
func (d explanation) remarks() []page.Line {
	var out []page.Line
	if d.Reason != "" {
		out = append(out, page.Remark("%s", d.Reason))
	}
	if d.State == string(inspect.DriftMissing) {
		out = append(out, page.Remark("an upgrade creates it"))
	}
	if d.Unverified != "" {
		out = append(out, page.Remark("not verified: %s", d.Unverified))
	}
	return out
}
