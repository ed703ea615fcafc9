package plan

import (
	"deployer/internal/view/document"
	"deployer/internal/view/output"
)

// page is the plan without its objects.
func (d Document) page() document.Page {
	return document.Page{Title: d.title(), Conclusion: d.Conclusion(), Warnings: document.WarningTexts(d.Warnings)}
}

// text is the plan for people.
func (d Document) text(palette output.Palette, o document.Options) string {
	items, note := d.items(o, unlimited), ""
	if !o.Full && length(items) > longPlan {
		items = d.items(o, longPlan)
		note = "This plan is shortened. To see all of it, use --full, or -o html to fold and search it.\n"
	}
	page := d.page()
	var all document.Section
	for _, i := range items {
		all.Entries = append(all.Entries, i.entry())
	}
	page.Sections = []document.Section{all}
	return page.Text(palette) + note
}
