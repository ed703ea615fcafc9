package page

import (
	"fmt"
	"html"
	"strings"

	"deployer/internal/view/textfmt"
)

// MaxMarkdown bounds the Markdown of a page, in bytes: GitHub takes comments of
// at most 65536 characters.
const MaxMarkdown = 60_000

// minWarnings is how many warnings are written in any case.
const minWarnings = 10

// Markdown is the page for a comment on a pull request. Entries that don't fit are counted.
func (p Page) Markdown() (text string, omitted int) {
	head := fmt.Sprintf("### %s\n\n**%s**\n", textfmt.EscapeMarkdown(p.Title), textfmt.EscapeMarkdown(p.Conclusion))
	const roomToCount = 100
	room := MaxMarkdown - len(head) - len(MarkdownWarnings(p.Warnings, minWarnings, 0)) - len(p.Note) - roomToCount
	var b strings.Builder
	for _, section := range p.Sections {
		if section.Title != "" {
			fmt.Fprintf(&b, "\n#### %s\n", textfmt.EscapeMarkdown(section.Title))
		}
		for _, entry := range section.Entries {
			text := entry.Markdown()
			if b.Len()+len(text) > room {
				omitted++
				continue
			}
			b.WriteString(text)
		}
	}
	if p.Note != "" {
		b.WriteString("\n" + textfmt.EscapeMarkdown(p.Note) + "\n")
	}
	if omitted > 0 {
		fmt.Fprintf(&b, "\n%s left out: too long for a comment.\n", textfmt.Count(omitted, "object"))
	}
	return head + MarkdownWarnings(p.Warnings, minWarnings, MaxMarkdown-len(head)-b.Len()) + b.String(), omitted
}

// MarkdownWarnings writes the first warnings: so many in any case, and more while they fit into the
// room, in bytes.
func MarkdownWarnings(warnings []string, inAnyCase, room int) string {
	var b strings.Builder
	for i, warning := range warnings {
		text := fmt.Sprintf("\n> **Warning:** %s\n", textfmt.EscapeMarkdown(warning))
		if i >= inAnyCase && b.Len()+len(text) > room {
			fmt.Fprintf(&b, "\n%s more.\n", textfmt.Count(len(warnings)-i, "warning"))
			break
		}
		b.WriteString(text)
	}
	return b.String()
}

// Markdown is the entry as a line, or as a part to unfold when there is more to it.
func (e Entry) Markdown() string {
	e = textfmt.Harmless(e)
	h := e.Heading
	head := fmt.Sprintf("<code>%s</code> %s", html.EscapeString(string(h.Sign))+" "+textfmt.EscapeMarkdownHTML(h.Name), textfmt.EscapeMarkdownHTML(h.Words))
	if h.Source != "" {
		head += " <sub>" + textfmt.EscapeMarkdownHTML(h.Source) + "</sub>"
	}
	if len(e.Lines) == 0 {
		return "\n" + head + "\n"
	}
	var text strings.Builder
	for _, l := range e.Lines {
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
