package plan

import (
	"strings"

	"deployer/apply"
	"deployer/internal/view/page"
)

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
