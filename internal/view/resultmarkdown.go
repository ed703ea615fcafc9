package view

import (
	"fmt"
	"strings"

	"deployer/internal/hide"
)

// resultMarkdown writes a result for the page of a CI job.
func resultMarkdown(r Result, hidden *hide.Texts) string {
	g := unicodeGlyphs()
	// Hidden before it is escaped: it wouldn't be found any more.
	text := func(s string) string { return markdown(hidden.Hide(s)) }
	var b strings.Builder
	if r.Error == "" {
		s := r.Summary
		fmt.Fprintf(&b, "### ✓ %s %s → %s in %s\n\n", markdown(r.Release), markdown(r.Status), markdown(r.Namespace), took(r))
		b.WriteString("| created | updated | recreated | deleted | unchanged |\n|---|---|---|---|---|\n")
		fmt.Fprintf(&b, "| %d | %d | %d | %d | %d |\n", s.Created, s.Updated, s.Recreated, s.Deleted, s.Unchanged)
	} else {
		fmt.Fprintf(&b, "### ✗ %s\n", text(headlineOf(r, g)))
		for i, c := range r.Causes {
			var lines strings.Builder
			for _, l := range c.lines(g) {
				lines.WriteString(hidden.Hide(l) + "\n")
			}
			fence := fenceFor(lines.String())
			fmt.Fprintf(&b, "\n**%d. %s** (%s)\n\n%s\n%s%s\n", i+1, text(c.headline()), markdown(c.Class), fence, lines.String(), fence)
		}
	}
	if undo := r.Rollback; undo != nil {
		outcome := "succeeded"
		if undo.Error != "" {
			outcome = "failed: " + undo.Error
		}
		fmt.Fprintf(&b, "\nThe %s %s.\n", markdown(undo.Verb), text(outcome))
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "\n> **Warning:** %s\n", text(w))
	}
	return b.String() + "\n"
}
