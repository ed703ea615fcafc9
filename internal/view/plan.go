// Package view writes everything that people and programs read: plans, events,
// tables and errors, as text, progress or JSON. Nothing else writes.
package view

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"deployer/internal/deploy"
	"deployer/internal/view/output"
)

// The formats of plans beyond those of all commands.
const (
	FormatMarkdown output.Format = "markdown" // for comments on pull requests
	FormatHTML     output.Format = "html"     // one page that needs no network
	FormatMermaid  output.Format = "mermaid"  // the order of work, for Markdown that draws
	FormatDot      output.Format = "dot"      // the order of work, for Graphviz
)

// ParsePlanFormat accepts what plan -o accepts; empty means a table, which for
// plans is text, so text is accepted too.
func ParsePlanFormat(s string) (output.Format, error) {
	switch f := output.Format(s); f {
	case "", "text":
		return output.FormatTable, nil
	case "md":
		return FormatMarkdown, nil
	case output.FormatTable, output.FormatJSON, output.FormatYAML, FormatMarkdown, FormatHTML, FormatMermaid, FormatDot:
		return f, nil
	}
	return "", fmt.Errorf("invalid format type %q: use table, json, yaml, markdown, html, mermaid or dot", s)
}

// PlanOptions say how to show a plan. The zero value is text, coloured on a
// terminal, of what changes.
type PlanOptions struct {
	Format output.Format
	Colour output.Colour
	// ShowUnchanged lists the objects that stay as they are; else they are counted.
	ShowUnchanged bool
	// ShowCreated writes out new objects also when all are new, as in a first
	// install; else those are only named.
	ShowCreated bool
	// Full shows all of a plan that is too long to be read; else objects to which
	// the same happens share an entry, and what doesn't fit is counted.
	Full bool
	// Context is how many unchanged lines are shown around each changed line of
	// a text of several lines.
	Context int
	// Env reads environment variables; nil means os.Getenv.
	Env func(string) string
}

// Plan writes to s.Out what op would do. Values of Secrets are never written,
// in no format. The error is that of writing.
func Plan(s output.Streams, op *deploy.Operation, o PlanOptions) error {
	return newPlan(op).write(s, o)
}

// SavedPlan is Plan for one that was written as JSON before.
func SavedPlan(s output.Streams, saved string, o PlanOptions) error {
	if o.Format == output.FormatJSON {
		_, err := io.WriteString(s.Data(), saved)
		return err
	}
	var d planDocument
	decoder := json.NewDecoder(strings.NewReader(saved))
	decoder.UseNumber() // what was 12345678901234567890 stays that
	if err := decoder.Decode(&d); err != nil {
		return fmt.Errorf("reading a plan: %w", err)
	}
	return d.write(s, o)
}

func (d planDocument) write(s output.Streams, o PlanOptions) error {
	var b strings.Builder
	if err := writePlan(&b, s, d, o); err != nil {
		return err
	}
	if o.Format == output.FormatTable || o.Format == "" {
		return s.WriteText(b.String(), o.Env)
	}
	_, err := io.WriteString(s.For(o.Format), b.String())
	return err
}

func writePlan(w io.Writer, s output.Streams, d planDocument, o PlanOptions) error {
	switch o.Format {
	case output.FormatJSON, output.FormatYAML:
		return output.Encode(w, o.Format, d)
	case FormatMarkdown:
		return planMarkdown(w, d, o)
	case FormatHTML:
		return planHTML(w, d, o)
	case FormatMermaid:
		return planMermaid(w, d)
	case FormatDot:
		return planDot(w, d)
	}
	return planText(w, s, d, o)
}
