package view

import (
	"fmt"
	"html"
	"io"
	"strings"

	"deployer/internal/view/textfmt"
)

// maxMarkdown bounds the Markdown of a plan, in bytes: GitHub takes comments of
// at most 65536 characters.
const maxMarkdown = 60_000

// budgets are the numbers of lines to which a plan is shortened until it fits.
var budgets = []int{everything, 600, 300, 150, 60, 0}

// planMarkdown writes a plan for a comment on a pull request.
func planMarkdown(w io.Writer, d planDocument, o PlanOptions) error {
	var head strings.Builder
	fmt.Fprintf(&head, "### %s\n\n**%s**\n", textfmt.EscapeMarkdown(d.title()), textfmt.EscapeMarkdown(d.conclusion()))
	text := ""
	for _, budget := range budgets {
		blocks := d.blocks(o, budget)
		if budget == everything && length(blocks) > 20*longPlan {
			continue // wouldn't fit, and takes a while
		}
		var body strings.Builder
		for _, b := range blocks {
			body.WriteString(blockMarkdown(b.heading(), b.lines))
		}
		text = body.String()
		if budget != everything {
			text += "\nThis plan is made shorter to fit a comment: `deployer plan` with `--full` or `-o html` shows all of it.\n"
		}
		if head.Len()+len(text) <= maxMarkdown {
			break
		}
	}
	notes := warningsMarkdown(told(d.Warnings), maxMarkdown-head.Len()-len(text))
	_, err := io.WriteString(w, head.String()+notes+within(text, maxMarkdown-head.Len()-len(notes)))
	return err
}

// warningsMarkdown writes as many warnings as fit, at least some.
func warningsMarkdown(warnings []string, room int) string {
	const least = 10
	var b strings.Builder
	for i, warning := range warnings {
		text := fmt.Sprintf("\n> **Warning:** %s\n", textfmt.EscapeMarkdown(warning))
		if i >= least && b.Len()+len(text) > room {
			fmt.Fprintf(&b, "\n%s more.\n", textfmt.Count(len(warnings)-i, "warning"))
			break
		}
		b.WriteString(text)
	}
	return b.String()
}

// within cuts text at an entry when it is still too long: for thousands of
// objects that are deleted.
func within(text string, most int) string {
	const note = "\nThe rest is left out: too long for a comment.\n"
	if len(text) <= most {
		return text
	}
	text = text[:max(0, most-len(note))]
	// Lines within an entry begin with a sign.
	return text[:max(0, strings.LastIndex(text, "\n<details>"), strings.LastIndex(text, "\n<code>"))] + note
}

func blockMarkdown(h heading, lines []planLine) string {
	head := fmt.Sprintf("<code>%s</code> %s", html.EscapeString(string(h.sign))+" "+textfmt.EscapeMarkdownHTML(h.name), textfmt.EscapeMarkdownHTML(h.words))
	if h.source != "" {
		head += " <sub>" + textfmt.EscapeMarkdownHTML(h.source) + "</sub>"
	}
	if len(lines) == 0 {
		return "\n" + head + "\n"
	}
	var text strings.Builder
	for _, l := range lines {
		sign := l.Sign
		switch sign {
		case '~':
			sign = '!' // what GitHub marks as changed
		case '?':
			sign = '#' // a remark
		}
		fmt.Fprintf(&text, "%c %s\n", sign, l.Text)
	}
	fence := textfmt.Fence(text.String())
	return fmt.Sprintf("\n<details><summary>%s</summary>\n\n%sdiff\n%s%s\n\n</details>\n", head, fence, text.String(), fence)
}
