package plan

import (
	"deployer/internal/view/output"
	"deployer/internal/view/page"
)

// page is the plan without its objects.
func (d Document) page() page.Page {
	return page.Page{Title: d.title(), Conclusion: d.Conclusion(), Warnings: page.WarningTexts(d.Warnings)}
}

// text is the plan for people.
func (d Document) text(palette output.Palette, o page.Options) string {
	items, note := d.items(o, unlimited), ""
	if !o.Full && length(items) > longPlan {
		items = d.items(o, longPlan)
		note = "This plan is shortened. To see all of it, use --full, or -o html to fold and search it.\n"
	}
	p := d.page()
	var all page.Section
	for _, i := range items {
		all.Entries = append(all.Entries, i.entry())
	}
	p.Sections = []page.Section{all}
	return p.Text(palette) + note
}
