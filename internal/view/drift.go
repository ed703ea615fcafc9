package view

import (
	"fmt"
	"io"
	"strings"

	"deployer/apply"
	"deployer/internal/deploy"
	"deployer/internal/view/output"
	"deployer/internal/view/textfmt"
)

// ParseDriftFormat accepts what plan --drift -o accepts.
func ParseDriftFormat(s string) (output.Format, error) {
	f, err := ParsePlanFormat(s)
	if err == nil && (f == FormatMermaid || f == FormatDot) {
		err = fmt.Errorf("invalid format type %q: a drift has no order of work; use table, json, yaml, markdown or html", s)
	}
	return f, err
}

// Drift writes how the cluster differs from what a release has deployed, as
// Plan writes plans.
func Drift(s output.Streams, drift *deploy.Drift, o PlanOptions) error {
	d := newDrift(drift)
	var b strings.Builder
	var err error
	switch o.Format {
	case output.FormatJSON, output.FormatYAML:
		err = output.Encode(&b, o.Format, d)
	case FormatMarkdown:
		driftMarkdown(&b, d, o)
	case FormatHTML:
		err = driftHTML(&b, d, o)
	default:
		driftText(&b, s.Palette(o.Colour, s.OutTTY), d, o)
	}
	if err != nil {
		return err
	}
	if o.Format == output.FormatTable || o.Format == "" {
		return s.WriteText(b.String(), o.Env)
	}
	_, err = io.WriteString(s.For(o.Format), b.String())
	return err
}

// originWords are the headings of a drift.
var originWords = map[apply.Origin]string{
	apply.Manual:        "Manual edits",
	apply.FailedRelease: "Left by failed or other revisions",
	apply.OtherRelease:  "Other releases",
	apply.Deleted:       "Deleted objects",
	apply.Controllers:   "Controllers",
	"":                  "Not known",
}

// A driftSection is the objects of one origin.
type driftSection struct {
	title   string
	objects []driftObject
}

func (d driftDocument) sections() []driftSection {
	var out []driftSection
	for _, origin := range append(origins, "") {
		section := driftSection{title: originWords[origin]}
		for _, o := range d.Objects {
			if o.Origin == string(origin) {
				section.objects = append(section.objects, o)
			}
		}
		if len(section.objects) > 0 {
			out = append(out, section)
		}
	}
	return out
}

func (d driftDocument) title() string {
	text := fmt.Sprintf("Drift of %s in %s from revision %d", d.Release, d.Namespace, d.Revision)
	if d.Chart != "" {
		text += ", chart " + d.Chart
	}
	if d.LatestRevision != d.Revision {
		text += fmt.Sprintf(" (revision %d is %s)", d.LatestRevision, d.LatestStatus)
	}
	return textfmt.Line(text)
}

// conclusion is the last line of a drift.
func (d driftDocument) conclusion() string {
	var parts []string
	expected := 0
	for _, origin := range origins {
		n := d.Summary.Origins[string(origin)]
		expected += n.Expected
		what := counted(n)
		if what == "" {
			continue
		}
		parts = append(parts, what+driftPhrases[origin])
	}
	text := "No drift."
	switch {
	case d.HasDrift:
		text = "Drift: " + strings.Join(parts, "; ") + "."
	case len(parts) > 0:
		text = "No drift but what deployments leave alone: " + strings.Join(parts, "; ") + "."
	}
	if d.HasDrift && expected > 0 {
		text += fmt.Sprintf(" Deployments leave %d of it alone.", expected)
	}
	text += " " + textfmt.Count(d.Summary.Same, "object") + " as deployed"
	if n := d.Summary.Reckoned; n > 0 {
		text += fmt.Sprintf(" (%d by local estimate)", n)
	}
	if n := d.Summary.Unknown; n > 0 {
		text += fmt.Sprintf(", %d not known", n)
	}
	return text + "."
}

// driftPhrases say who was it.
var driftPhrases = map[apply.Origin]string{
	apply.Manual: " edited by hand", apply.FailedRelease: " left by other revisions", apply.OtherRelease: " of other releases",
	apply.Deleted: " deleted", apply.Controllers: " set by controllers",
}

func counted(n driftCount) string {
	var parts []string
	if n.Fields > 0 {
		parts = append(parts, textfmt.Count(n.Fields, "field"))
	}
	if n.Objects > 0 {
		parts = append(parts, textfmt.Count(n.Objects, "object"))
	}
	return textfmt.List(parts)
}

// heading says of an object how it differs, and who was it.
func (o driftObject) heading() heading {
	sign, words := byte('~'), "changed"
	switch apply.DriftState(o.State) {
	case apply.Missing, apply.Going:
		sign, words = '-', "missing"
	case apply.Extra:
		sign, words = '+', "extra"
	case apply.NotOurs:
		sign, words = '=', "taken"
	case apply.Unlooked:
		sign, words = '?', "not known"
	}
	switch {
	case o.By != nil:
		words += " by " + o.By.String()
	case o.State == string(apply.Changed) && o.Origin == string(apply.Manual):
		words = "removed, nobody knows by whom"
	case o.Reason != "":
		words += ": " + o.Reason
	}
	if o.Expected && o.Origin != "" {
		words += "; deployments leave it alone"
	}
	return heading{sign: sign, name: textfmt.Line(o.Object), words: textfmt.Line(words), source: textfmt.Line(o.Source)}
}

func (o driftObject) lines(context int) []planLine {
	var out []planLine
	if o.Unverified != "" {
		out = append(out, planLine{'?', textfmt.Line("not verified: " + o.Unverified)})
	}
	for _, f := range o.Fields {
		shown := planField{Path: f.Path, Kind: f.Kind, Before: f.Released, After: f.Live, Hidden: f.Hidden, Revision: f.Revision}
		out = append(out, shown.lines(context)...)
	}
	return out
}

func driftText(w io.Writer, p output.Palette, d driftDocument, o PlanOptions) {
	paint := painter(p)
	fmt.Fprintf(w, "%s\n\n", p.Bold.Sprint(d.title()))
	for _, section := range d.sections() {
		fmt.Fprintf(w, "%s\n", p.Bold.Sprint(section.title))
		for _, object := range section.objects {
			blockText(w, p, paint, object.heading(), object.lines(o.Context))
		}
		fmt.Fprintln(w)
	}
	for _, warning := range d.Warnings {
		output.PrintWarning(w, p, warning.String())
	}
	fmt.Fprintln(w, p.Bold.Sprint(d.conclusion()))
}

func driftMarkdown(w *strings.Builder, d driftDocument, o PlanOptions) {
	fmt.Fprintf(w, "### %s\n\n**%s**\n", textfmt.EscapeMarkdown(d.title()), textfmt.EscapeMarkdown(d.conclusion()))
	for _, warning := range d.Warnings {
		fmt.Fprintf(w, "\n> **Warning:** %s\n", textfmt.EscapeMarkdown(warning.String()))
	}
	left := 0
	for _, section := range d.sections() {
		fmt.Fprintf(w, "\n#### %s\n", textfmt.EscapeMarkdown(section.title))
		for _, object := range section.objects {
			text := blockMarkdown(object.heading(), object.lines(o.Context))
			if w.Len()+len(text) > maxMarkdown {
				left++
				continue
			}
			w.WriteString(text)
		}
	}
	if left > 0 {
		fmt.Fprintf(w, "\n%s left out: too long for a comment.\n", textfmt.Count(left, "object"))
	}
}

func driftHTML(w io.Writer, d driftDocument, o PlanOptions) error {
	p := page{Title: d.title(), Conclusion: d.conclusion(), Open: len(d.Objects) <= unfolded}
	for _, warning := range d.Warnings {
		p.Warnings = append(p.Warnings, warning.String())
	}
	for i, section := range d.sections() {
		stage := pageStage{Title: section.title}
		for j, object := range section.objects {
			out := pageObjectOf(object.State, object.heading(), object.lines(o.Context))
			out.Anchor = anchor(i, j)
			stage.Objects = append(stage.Objects, out)
		}
		p.Stages = append(p.Stages, stage)
	}
	return p.write(w)
}
