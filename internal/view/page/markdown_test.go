package page

import (
	"regexp"
	"strings"
	"testing"

	"deployer/internal/view/textfmt"
	"deployer/internal/view/viewtest"
)

// comments are texts by which an object of the cluster would write into a comment
// on a pull request.
var comments = []string{
	"[click](http://evil.example)", "![x](https://evil.example/x.png)", "<img src=x onerror=y>", "<a href=//evil>x</a>", "@org/everyone", "see @someone",
	"https://evil.example/a", "www.evil.example", "me@evil.example", "mailto:me@evil.example", "#123", "org/repo#1", "GH-12", "!45", "&lt;img&gt;",
	"` @someone `", "``` x", "| a | b |", "</code></summary></details><h1>x", "--> x", "$x^2$", "[a]: http://evil", "~~x~~ **y** _z_", "&#64;someone", "%2 ~bug",
}

// obeyed is what GitHub or GitLab would make something of, in text that isn't in a fence.
var obeyed = regexp.MustCompile(`(?i)(^|[^\\])\]\(|!\[|<(img|a|h1|script)\b|@[\w]|[^&\\]#\d|://|\bwww\.|mailto:|\bgh-\d|</(code|summary|details)>.*</(code|summary|details)>.*<h1>`)

func TestTextOfTheClusterMakesNothingInComments(t *testing.T) {
	for _, text := range comments {
		for name, write := range map[string]func(string) string{"markdown": textfmt.EscapeMarkdown, "entities": textfmt.EscapeMarkdownHTML} {
			got := write(text)
			if m := obeyed.FindString(got); m != "" {
				t.Errorf("%s(%q) = %q has %q", name, text, got, m)
			}
			if strings.ContainsAny(got, "<>") || strings.ContainsRune(strings.ReplaceAll(got, "\\`", ""), '`') {
				t.Errorf("%s(%q) = %q", name, text, got)
			}
		}
		block := Entry{Heading: Heading{Sign: '~', Name: text, Words: text, Source: text}, Lines: []Line{{'+', text}, {'-', "```\n" + text}}}.Markdown()
		head, rest, _ := strings.Cut(block, "</summary>")
		if m := obeyed.FindString(strings.NewReplacer("<details><summary><code>", "", "</code>", "", "<sub>", "", "</sub>", "").Replace(head)); m != "" {
			t.Errorf("the heading of %q has %q: %s", text, m, head)
		}
		if fence := regexp.MustCompile("`{3,}").FindString(rest); strings.Count(rest, fence) != 2 {
			t.Errorf("the fence of %q ends early: %s", text, rest)
		}
	}
}

// FuzzMarkdown holds it for any text.
func FuzzMarkdown(f *testing.F) {
	// GitHub makes links behind _, which is part of a word to regular expressions.
	for _, text := range append(comments, viewtest.Hostile, "_www.example.com", "0www.", "_mailto:a") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, write := range map[string]func(string) string{"markdown": textfmt.EscapeMarkdown, "entities": textfmt.EscapeMarkdownHTML} {
			got := write(text)
			if strings.ContainsAny(got, "<>@\n") {
				t.Errorf("%s(%q) = %q", name, text, got)
			}
			for _, link := range []string{"://", "www.", "WWW.", "](", "![", "mailto:"} {
				if strings.Contains(strings.ReplaceAll(got, "\\]", " "), link) {
					t.Errorf("%s(%q) = %q has %s", name, text, got, link)
				}
			}
		}
	})
}
