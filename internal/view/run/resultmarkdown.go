package run

import (
	"fmt"
	"strings"

	"deployer/internal/view/page"
	"deployer/internal/view/textfmt"
)

// resultMarkdown writes a result for the page of a CI job.
func resultMarkdown(r Result) string {
	g := textfmt.UnicodeGlyphs
	var b strings.Builder
	if r.Error == "" {
		fmt.Fprintf(&b, "### ✓ %s %s → %s in %s\n\n", textfmt.EscapeMarkdown(r.Release), textfmt.EscapeMarkdown(r.Status), textfmt.EscapeMarkdown(r.Where()), took(r))
		b.WriteString(r.Summary.markdown())
	} else {
		fmt.Fprintf(&b, "### ✗ %s\n", textfmt.EscapeMarkdown(headlineOf(r, g)))
		for i, c := range r.Causes {
			text := c.text(g)
			fence := textfmt.Fence(text)
			fmt.Fprintf(&b, "\n**%d. %s** (%s)\n\n%s\n%s%s\n", i+1, textfmt.EscapeMarkdown(c.headline()), textfmt.EscapeMarkdown(string(c.Class)), fence, text, fence)
		}
	}
	if undo := r.Rollback; undo != nil {
		outcome := "succeeded"
		if undo.isIncomplete() {
			outcome = "succeeded, but for what can't go back"
		} else if undo.Error != "" {
			outcome = "failed: " + undo.Error
		}
		fmt.Fprintf(&b, "\nThe %s %s.\n", textfmt.EscapeMarkdown(string(undo.Verb)), textfmt.EscapeMarkdown(outcome))
	}
	return b.String() + page.MarkdownWarnings(r.Warnings, len(r.Warnings), 0) + "\n"
}

// markdown is a table of what was done. What hardly any run does has a column only where it was done.
func (s ResultSummary) markdown() string {
	names, counts, line := "|", "|", "|"
	for _, c := range []struct {
		name   string
		n      int
		always bool
	}{
		{"created", s.Created, true}, {"updated", s.Updated, true}, {"recreated", s.Recreated, true}, {"deleted", s.Deleted, true},
		{"given back", s.GivenBack, false}, {"kept", s.Kept, false}, {"unchanged", s.Unchanged, true},
	} {
		if c.always || c.n > 0 {
			names, line, counts = names+" "+c.name+" |", line+"---|", fmt.Sprintf("%s %d |", counts, c.n)
		}
	}
	return names + "\n" + line + "\n" + counts + "\n"
}
