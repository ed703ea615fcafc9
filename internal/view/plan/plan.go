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
	case output.FormatJSON, output.FormatYAML:
		return output.Encode(s.Out, o.Format, d)
	case page.FormatMarkdown:
		return page.Write(s, o, d.markdown(o))
	case page.FormatHTML:
		return d.html(o).Write(s.Out)
	case page.FormatMermaid:
		return page.Write(s, o, d.mermaid())
	case page.FormatDot:
		return page.Write(s, o, d.graphviz())
	}
	return page.Write(s, o, d.text(s.OutPalette(o.Colour), o))
}

// page is the plan without its objects.
func (d Document) page() page.Page {
	return page.Page{Title: d.title(), Conclusion: d.Conclusion(), Warnings: page.WarningTexts(d.Warnings)}
}

// of is the plan with some items, in one section.
func (d Document) of(items []item, note string) page.Page {
	p, all := d.page(), page.Section{}
	for _, i := range items {
		all.Entries = append(all.Entries, i.entry())
	}
	p.Sections, p.Note = []page.Section{all}, note
	return p
}

// text is the plan for people.
func (d Document) text(palette output.Palette, o page.Options) string {
	items := d.items(o, unlimited)
	if o.Full || length(items) <= longPlan {
		return d.of(items, "").Text(palette)
	}
	return d.of(d.items(o, longPlan), "This plan is shortened. To see all of it, use --full, or -o html to fold and search it.").Text(palette)
}

// html is the plan as one page that needs nothing else.
func (d Document) html(o page.Options) page.HTMLPage {
	p := page.HTMLPage{
		Page: d.page(), Counts: d.Summary.counts(), Boxes: d.boxes(),
		Signs: []string{"+ create", "~ update", "! delete and create again", "- delete", "< give back", "= keep", "> hook"},
	}
	p.Page.Title = strings.ReplaceAll(p.Page.Title, " -> ", " → ") // browsers break lines within ->
	for _, s := range d.Steps {
		section := page.Section{Title: s.Name}
		for _, object := range s.Objects {
			section.Entries = append(section.Entries, item{object: object, lines: object.details(o, true)}.entry())
		}
		p.Page.Sections = append(p.Page.Sections, section)
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

// budgets are the numbers of lines to which a plan is shortened until it fits.
var budgets = []int{unlimited, 600, 300, 150, 60, 0}

// markdown is the plan for a comment on a pull request.
func (d Document) markdown(o page.Options) string {
	text := ""
	for _, budget := range budgets {
		items, note := d.items(o, budget), "This plan is shortened to fit a comment: a plan with --full or -o html shows all of it."
		if budget == unlimited {
			note = ""
		}
		if budget == unlimited && length(items) > 20*longPlan {
			continue // wouldn't fit, and takes a while
		}
		omitted := 0
		if text, omitted = d.of(items, note).Markdown(); omitted == 0 {
			break
		}
	}
	return text
}
