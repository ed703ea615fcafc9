package plan

import (
	"strings"

	"deployer/internal/view/page"
)

// budgets are the numbers of lines to which a plan is shortened until it fits.
var budgets = []int{unlimited, 600, 300, 150, 60, 0}

// markdown is the plan for a comment on a pull request.
func (d Document) markdown(o page.Options) string {
	p := d.page()
	head := p.MarkdownHead()
	text := ""
	for _, budget := range budgets {
		items := d.items(o, budget)
		if budget == unlimited && length(items) > 20*longPlan {
			continue // wouldn't fit, and takes a while
		}
		var body strings.Builder
		for _, i := range items {
			body.WriteString(i.entry().Markdown())
		}
		text = body.String()
		if budget != unlimited {
			text += "\nThis plan is shortened to fit a comment: `deployer plan` with `--full` or `-o html` shows all of it.\n"
		}
		if len(head)+len(text) <= page.MaxMarkdown {
			break
		}
	}
	const minWarnings = 10
	warnings := page.MarkdownWarnings(p.Warnings, minWarnings, page.MaxMarkdown-len(head)-len(text))
	return head + warnings + truncate(text, page.MaxMarkdown-len(head)-len(warnings))
}

// truncate cuts text at an entry when it is still too long: for thousands of
// objects that are deleted.
func truncate(text string, limit int) string {
	const note = "\nThe rest is left out: too long for a comment.\n"
	if len(text) <= limit {
		return text
	}
	text = text[:max(0, limit-len(note))]
	// Lines within an entry begin with a sign.
	return text[:max(0, strings.LastIndex(text, "\n<details>"), strings.LastIndex(text, "\n<code>"))] + note
}
