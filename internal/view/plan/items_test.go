package plan

import (
	"fmt"
	"strings"
	"testing"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/internal/view/page"
	"deployer/internal/view/viewtest"
)

// TestPlanOfManyChanges holds that a long plan can be read, that it says where
// the rest is, and that what is deleted or made anew is named all the same.
func TestPlanOfManyChanges(t *testing.T) {
	text := planOf(t, manyChanges(t), page.Options{Context: 3})
	viewtest.Golden(t, "plan-many.txt.golden", []byte(text))
	if n := strings.Count(text, "\n"); n > longPlan+50 {
		t.Errorf("the plan has %d lines", n)
	}
	markdown := planOf(t, manyChanges(t), page.Options{Format: page.FormatMarkdown, Context: 3})
	if len(markdown) > page.MaxMarkdown {
		t.Errorf("the Markdown has %d bytes", len(markdown))
	}
	for name, shown := range map[string]string{"text": text, "markdown": markdown} {
		for _, what := range []string{"Job/prod/once", "Service/prod/old-29", "Deployment/prod/web", "--full", "the same for 999 more objects"} {
			if !strings.Contains(shown, what) {
				t.Errorf("%s: %q is missing", name, what)
			}
		}
	}
	full := planOf(t, manyChanges(t), page.Options{Context: 3, Full: true})
	html := planOf(t, manyChanges(t), page.Options{Format: page.FormatHTML, Context: 3})
	for i := range 1000 {
		name := fmt.Sprintf("ConfigMap/prod/same-%03d", i)
		if i%4 == 0 {
			name = fmt.Sprintf("ConfigMap/prod/other-%03d", i)
		}
		if !strings.Contains(full, name) || !strings.Contains(html, name) {
			t.Fatalf("%s is missing in what shows everything", name)
		}
	}
}

// TestMarkdownFits holds that no plan is too long for a comment, and that it is
// cut between entries.
func TestMarkdownFits(t *testing.T) {
	op := manyChanges(t)
	for i := range 3000 {
		op.Plan.Prune = append(op.Plan.Prune, apply.Change{ID: viewtest.ID("", "Service", fmt.Sprintf("gone-%d", i)), Action: decide.Delete, Reason: fmt.Sprintf("left by failed revision %d", i)})
		op.Warnings = append(op.Warnings, fmt.Sprintf("%d: %s", i, strings.Repeat("long ", 30)))
	}
	text := planOf(t, op, page.Options{Format: page.FormatMarkdown, Context: 3})
	if len(text) > page.MaxMarkdown || !strings.Contains(text, "too long for a comment") || !strings.Contains(text, "warnings more") {
		t.Errorf("%d bytes of Markdown, ending in:\n%s", len(text), text[max(0, len(text)-400):])
	}
	if opened, closed := strings.Count(text, "<details>"), strings.Count(text, "</details>"); opened != closed {
		t.Errorf("%d details are opened and %d closed", opened, closed)
	}
}
