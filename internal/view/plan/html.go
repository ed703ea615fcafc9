package plan

import (
	"deployer/apply"
	"deployer/internal/view/document"
	"deployer/internal/view/textfmt"
)

// html is the plan as one page that needs nothing else.
func (d Document) html(o document.Options) document.HTMLPage {
	page := document.HTMLPage{Page: d.page(), Counts: d.Summary.counts(), Steps: d.steps()}
	for _, s := range d.Steps {
		section := document.Section{Title: textfmt.CleanLine(s.Name)}
		for _, object := range s.Objects {
			section.Entries = append(section.Entries, item{object: object, lines: object.details(o, true)}.entry())
		}
		page.Page.Sections = append(page.Page.Sections, section)
	}
	return page
}

// counts are the numbers at the head of the page, without those that are zero.
func (s Summary) counts() []document.Count {
	var out []document.Count
	for _, c := range []document.Count{
		{N: s.Create, Class: string(apply.Create), Word: "to create"}, {N: s.Update, Class: string(apply.Update), Word: "to update"},
		{N: s.Recreate, Class: string(apply.Recreate), Word: "to recreate"}, {N: s.Delete, Class: string(apply.Delete), Word: "to delete"},
		{N: s.GiveBack, Class: string(apply.GiveBack), Word: "to give back"}, {N: s.Hooks, Class: string(actionHook), Word: "hooks"},
		{N: s.Keep, Class: string(apply.Keep), Word: "kept"}, {N: s.Unchanged, Class: string(apply.Unchanged), Word: "unchanged"},
	} {
		if c.N > 0 {
			out = append(out, c)
		}
	}
	return out
}
