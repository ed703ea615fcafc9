// Package inspection shows drifts and explanations of objects.
package inspection

import (
	"fmt"
	"slices"
	"strings"

	"deployer/apply/compare"
	"deployer/apply/inspect"
	"deployer/internal/deploy"
	"deployer/internal/view/diff"
	"deployer/internal/view/output"
	"deployer/internal/view/page"
	"deployer/internal/view/textfmt"
)

// ShowDrift writes how the cluster differs from what a release has deployed.
func ShowDrift(s output.Streams, drift *deploy.Drift, o page.Options) error {
	d := newDrift(drift)
	return page.Show(s, o, d, func() page.Page { return d.page(o.Context) })
}

// page has a section for each origin.
func (d driftDocument) page(context int) page.Page {
	p := page.Page{
		Title: d.title(), Conclusion: d.conclusion(), Warnings: page.WarningTexts(d.Warnings),
		Signs: []string{"~ changed", "- missing", "+ extra", "= taken", "? unknown"},
	}
	for _, from := range append(origins, originWords{title: "Unknown"}) {
		section := page.Section{Title: from.title}
		for _, o := range d.Objects {
			if o.Origin == from.origin {
				section.Entries = append(section.Entries, page.Entry{Heading: o.heading(), Lines: o.lines(context), Class: string(o.State)})
			}
		}
		if len(section.Entries) > 0 {
			p.Sections = append(p.Sections, section)
		}
	}
	return p
}

// originWords are an origin of a drift, the title of its section, and what the conclusion says of it.
type originWords struct {
	origin            inspect.Origin
	title, conclusion string
}

// origins are in the order in which they are shown.
var origins = []originWords{
	{inspect.OriginManual, "Manual edits", " edited by hand"},
	{inspect.OriginFailedRelease, "Left by failed or other revisions", " left by other revisions"},
	{inspect.OriginOtherRelease, "Other releases", " of other releases"},
	{inspect.OriginDeleted, "Deleted objects", " deleted"},
	{inspect.OriginController, "Controllers", " set by controllers"},
}

func (d driftDocument) title() string {
	text := fmt.Sprintf("Drift of %s in %s from revision %d", d.Release, d.Namespace, d.Revision)
	if d.Chart != "" {
		text += ", chart " + d.Chart
	}
	text += d.InTitle()
	if d.LatestRevision != d.Revision {
		text += fmt.Sprintf(" (revision %d is %s)", d.LatestRevision, d.LatestStatus)
	}
	return text
}

// conclusion is the last line of a drift.
func (d driftDocument) conclusion() string {
	var parts []string
	expected := 0
	for _, o := range origins {
		n := d.Summary.Origins[o.origin]
		expected += n.Expected
		if what := counted(n); what != "" {
			parts = append(parts, what+o.conclusion)
		}
	}
	text := "No drift."
	switch {
	case d.HasDrift:
		text = "Drift: " + strings.Join(parts, "; ") + "."
	case len(parts) > 0:
		text = "No drift except what the next upgrade leaves unchanged: " + strings.Join(parts, "; ") + "."
	}
	if d.HasDrift && expected > 0 {
		text += fmt.Sprintf(" The next upgrade leaves %d of these unchanged.", expected)
	}
	var others []string
	if n := d.Summary.Same; n > 0 || len(parts) == 0 && d.Summary.Unknown == 0 {
		same := textfmt.Count(n, "object") + " as deployed"
		if n := d.Summary.Estimated; n > 0 {
			same += fmt.Sprintf(" (%d by local estimate)", n)
		}
		others = append(others, same)
	}
	if n := d.Summary.Unknown; n > 0 {
		others = append(others, fmt.Sprintf("%d unknown", n))
	}
	if len(others) > 0 {
		text += " " + strings.Join(others, ", ") + "."
	}
	return text
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

// heading says how an object differs, and who changed it.
func (o driftObject) heading() page.Heading {
	sign, words := byte('~'), "changed"
	switch o.State {
	case inspect.DriftMissing, inspect.DriftDeleting:
		sign, words = '-', "missing"
	case inspect.DriftExtra:
		sign, words = '+', "extra"
	case inspect.DriftTakenOver:
		sign, words = '=', "taken"
	case inspect.DriftUnknown:
		sign, words = '?', "unknown"
	}
	switch {
	case o.By != nil:
		words += " by " + page.ManagerText(o.By.Manager, *o.By)
	case o.State == inspect.DriftChanged && o.Origin == inspect.OriginManual:
		if !slices.ContainsFunc(o.Fields, func(f driftField) bool { return f.Type != compare.Removed }) {
			words = "removed"
		}
		words += ", manager unknown"
	case o.Reason != "":
		words += ": " + o.Reason
	}
	if o.Expected && o.Origin != "" {
		words += "; the next upgrade leaves it unchanged"
	}
	return page.Heading{Sign: sign, Name: o.Object, Words: words, Source: o.Source}
}

func (o driftObject) lines(context int) []page.Line {
	var out []page.Line
	if o.Unverified != "" {
		out = append(out, page.Remark("not verified: %s", o.Unverified))
	}
	for _, f := range o.Fields {
		shown := diff.Field{Path: f.Path, Type: f.Type, Before: f.Released, After: f.Live, Hidden: f.Hidden, Revision: f.Revision}
		out = append(out, page.FieldLines(shown, context)...)
	}
	return out
}
