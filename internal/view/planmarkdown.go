package view

import (
	"fmt"
	"html"
	"io"
	"strings"
)

// maxMarkdown bounds the Markdown of a plan, in bytes: GitHub takes comments of
// at most 65536 characters.
const maxMarkdown = 60_000

// planMarkdown writes a plan for a comment on a pull request.
func planMarkdown(w io.Writer, d planDocument, o PlanOptions) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n**%s**\n", markdown(d.title()), markdown(d.conclusion()))
	for _, warning := range d.Warnings {
		fmt.Fprintf(&b, "\n> **Warning:** %s\n", markdown(warning.String()))
	}
	created := o.ShowCreated || d.BaseRevision > 0
	left := 0
	for _, stage := range d.Stages {
		for _, object := range stage.Objects {
			if object.sign() == ' ' && !o.ShowUnchanged {
				continue
			}
			text := objectMarkdown(object, object.details(o, created))
			if b.Len()+len(text) > maxMarkdown {
				left++
				continue
			}
			b.WriteString(text)
		}
	}
	if left > 0 {
		fmt.Fprintf(&b, "\n%s left out: too long for a comment.\n", count(left, "object"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func objectMarkdown(o planObject, lines []planLine) string {
	name, words := o.headline()
	head := fmt.Sprintf("<code>%s</code> %s", html.EscapeString(string(o.sign())+" "+name), html.EscapeString(words))
	if o.Source != "" {
		head += " <sub>" + html.EscapeString(line(o.Source)) + "</sub>"
	}
	if len(lines) == 0 {
		return "\n" + head + "\n"
	}
	var b strings.Builder
	for _, l := range lines {
		sign := l.Sign
		switch sign {
		case '~':
			sign = '!' // what GitHub marks as changed
		case '?':
			sign = '#' // a remark
		}
		fmt.Fprintf(&b, "%c %s\n", sign, l.Text)
	}
	fence := fenceFor(b.String())
	return fmt.Sprintf("\n<details><summary>%s</summary>\n\n%sdiff\n%s%s\n\n</details>\n", head, fence, b.String(), fence)
}

// fenceFor is a fence longer than any in the text, so that none ends it.
func fenceFor(text string) string {
	longest, run := 0, 0
	for _, r := range text {
		if r != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return strings.Repeat("`", max(3, longest+1))
}

// markdown writes text that means itself: https://spec.commonmark.org/0.31.2/#backslash-escapes
func markdown(s string) string {
	var b strings.Builder
	for _, r := range line(s) {
		switch {
		case r == '<':
			b.WriteString("&lt;")
			continue
		case r == '>':
			b.WriteString("&gt;")
			continue
		case r == '&':
			b.WriteString("&amp;")
			continue
		case r == '@': // would notify the person
			b.WriteString("&#64;")
			continue
		case strings.ContainsRune("\\`*_{}[]#!|~", r):
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
