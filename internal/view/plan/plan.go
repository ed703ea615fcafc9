// Package plan shows what an operation would do: as text, JSON, YAML, Markdown, a
// page of HTML, or a graph of the order of work.
package plan

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"deployer/apply/decide"
	"deployer/internal/deploy"
	"deployer/internal/view/output"
	"deployer/internal/view/page"
)

// Show writes to s.Out what op would do. Values of Secrets are never written,
// in no format. The error is that of writing.
func Show(s output.Streams, op *deploy.Operation, o page.Options) error {
	return newDocument(op).show(s, o)
}

// ShowSaved is Show for a plan that was written as JSON before.
func ShowSaved(s output.Streams, saved string, o page.Options) error {
	if o.Format == output.FormatJSON {
		_, err := io.WriteString(s.Data(), saved)
		return err
	}
	var d Document
	decoder := json.NewDecoder(strings.NewReader(saved))
	decoder.UseNumber() // what was 12345678901234567890 stays that
	if err := decoder.Decode(&d); err != nil {
		return fmt.Errorf("reading a plan: %w", err)
	}
	return d.show(s, o)
}

func (d Document) show(s output.Streams, o page.Options) error {
	switch o.Format {
	case page.FormatMermaid:
		return page.Write(s, o, d.mermaid())
	case page.FormatDot:
		return page.Write(s, o, d.graphviz())
	}
	return page.Show(s, o, d, func() page.Page {
		switch o.Format {
		case page.FormatHTML:
			return d.foldedPage(o)
		case page.FormatMarkdown:
			return d.comment(o)
		}
		return d.shortPage(o)
	})
}

// page is the plan with some sections.
func (d Document) page(note string, sections ...page.Section) page.Page {
	return page.Page{Title: d.title(), Conclusion: d.Conclusion(), Warnings: page.WarningTexts(d.Warnings), Sections: sections, Note: note}
}

// shortPage has all items, unless they are very many.
func (d Document) shortPage(o page.Options) page.Page {
	items := d.items(o, unlimited)
	if o.Full || length(items) <= longPlan {
		return d.page("", section(items))
	}
	return d.page("This plan is shortened. To see all of it, use --full, or -o html to fold and search it.", section(d.items(o, longPlan)))
}

// foldedPage has all objects by step, and a picture of the steps, for a browser.
func (d Document) foldedPage(o page.Options) page.Page {
	p := d.page("")
	p.Counts, p.Boxes = d.Summary.counts(), d.boxes()
	p.Signs = []string{"+ create", "~ update", "! delete and create again", "- delete", "< give back", "= keep", "> hook"}
	p.Title = strings.ReplaceAll(p.Title, " -> ", " → ") // browsers break lines within ->
	for _, s := range d.Steps {
		step := page.Section{Title: s.Name}
		for _, object := range s.Objects {
			step.Entries = append(step.Entries, item{object: object, lines: object.details(o, true)}.entry())
		}
		p.Sections = append(p.Sections, step)
	}
	return p
}

// budgets are the numbers of lines to which a plan is shortened until it fits.
var budgets = []int{600, 300, 150, 60, 0}

// comment is the plan for a comment on a pull request.
func (d Document) comment(o page.Options) page.Page {
	fits := func(p page.Page) bool {
		_, omitted := p.Markdown()
		return omitted == 0
	}
	all := d.items(o, unlimited)
	p := d.page("", section(all))
	if length(all) <= 20*longPlan && fits(p) { // more wouldn't, and trying takes a while
		return p
	}
	for _, budget := range budgets {
		p = d.page("This plan is shortened to fit a comment: a plan with --full or -o html shows all of it.", section(d.items(o, budget)))
		if fits(p) {
			break
		}
	}
	return p
}

// counts are the numbers at the head of the page, without those that are zero.
func (s Summary) counts() []page.Count {
	var out []page.Count
	for _, c := range []page.Count{
		{N: s.Create, Class: string(decide.Create), Word: "to create"}, {N: s.Update, Class: string(decide.Update), Word: "to update"},
		{N: s.Recreate, Class: string(decide.Recreate), Word: "to recreate"}, {N: s.Delete, Class: string(decide.Delete), Word: "to delete"},
		{N: s.GiveBack, Class: string(decide.GiveBack), Word: "to give back"}, {N: s.Hooks, Class: string(actionHook), Word: "hooks"},
		{N: s.Keep, Class: string(decide.Keep), Word: "kept"}, {N: s.Unchanged, Class: string(decide.Unchanged), Word: "unchanged"},
	} {
		if c.N > 0 {
			out = append(out, c)
		}
	}
	return out
}
