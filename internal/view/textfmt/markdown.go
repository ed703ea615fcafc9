package textfmt

import (
	"fmt"
	"html"
	"strings"

	"deployer/internal/lazyregexp"
)

// EscapeMarkdown writes text that means itself where Markdown is read: it makes no link,
// image, mention, HTML or code, and ends none.
// https://spec.commonmark.org/0.31.2/#backslash-escapes
func EscapeMarkdown(s string) string {
	return escaped(s, func(r rune) string {
		if strings.ContainsRune("<>&@", r) {
			return entity(r)
		}
		return `\` + string(r)
	})
}

// EscapeMarkdownHTML escapes text for HTML inside Markdown. Backslash escapes work only in
// some places there, so each special character becomes an HTML entity.
// https://spec.commonmark.org/0.31.2/#entity-and-numeric-character-references
func EscapeMarkdownHTML(s string) string {
	return escaped(s, entity)
}

// escaped writes the characters of a text that mean something in Markdown by escape.
func escaped(s string, escape func(rune) string) string {
	var b strings.Builder
	for _, r := range unlinked(CleanLine(s)) {
		if strings.ContainsRune("<>&@\\`*_{}[]#!|~$", r) {
			b.WriteString(escape(r))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func entity(r rune) string {
	if name := html.EscapeString(string(r)); name != string(r) {
		return name
	}
	return fmt.Sprintf("&#%d;", r)
}

// joiner is an invisible letter where no line is broken.
const joiner = "\u2060"

// What GitHub and GitLab make links of in finished text, however it is escaped:
// mentions, addresses, issues and the like.
// https://github.github.com/gfm/#autolinks-extension-
// https://docs.gitlab.com/user/markdown/#gitlab-specific-references
var (
	references = lazyregexp.New(`([@#!$%~&*^])([\pL\pN_"\[])`)
	addresses  = lazyregexp.New(`(?i)(://|mailto:|xmpp:|www\.|\bgh-)`)
)

// unlinked returns text in which nothing becomes a link.
func unlinked(s string) string {
	s = references().ReplaceAllString(s, "${1}"+joiner+"${2}")
	return addresses().ReplaceAllStringFunc(s, func(m string) string { return m[:1] + joiner + m[1:] })
}

var backticks = lazyregexp.New("`+")

// Fence is a fence longer than any in the text, so that none ends it.
func Fence(text string) string {
	length := 3
	for _, run := range backticks().FindAllString(text, -1) {
		length = max(length, len(run)+1)
	}
	return strings.Repeat("`", length)
}
