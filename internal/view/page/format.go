package page

import (
	"fmt"
	"io"

	"deployer/internal/view/output"
)

// ParseDriftFormat accepts what plan --drift -o accepts.
func ParseDriftFormat(s string) (output.Format, error) {
	f, err := ParsePlanFormat(s)
	if err == nil && (f == FormatMermaid || f == FormatDot) {
		err = fmt.Errorf("invalid format type %q: a drift has no order; use table, json, yaml, markdown or html", s)
	}
	return f, err
}

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

// Options say how plans, drifts and explanations are shown. The zero value is text, coloured on a
// terminal.
type Options struct {
	Format output.Format
	Colour output.Colour
	// Context is how many unchanged lines are shown around each changed line of
	// a text of several lines.
	Context int
	// ShowUnchanged lists the objects of a plan that stay as they are; else they
	// are counted.
	ShowUnchanged bool
	// Full shows a long plan completely; otherwise objects with the same change share an entry
	// and the rest is counted.
	Full bool
	// Getenv reads environment variables; nil means os.Getenv.
	Getenv func(string) string
}

// Show writes a document for programs, or the page that people read of it.
func Show(s output.Streams, o Options, document any, page func() Page) error {
	switch o.Format {
	case output.FormatJSON, output.FormatYAML:
		return output.Encode(s.Out, o.Format, document)
	case FormatMarkdown:
		text, _ := page().Markdown()
		return Write(s, o, text)
	case FormatHTML:
		return page().HTML(s.Out)
	}
	return Write(s, o, page().Text(s.OutPalette(o.Colour)))
}

// Write writes a finished text to standard output.
func Write(s output.Streams, o Options, text string) error {
	if o.Format == output.FormatTable || o.Format == "" {
		return s.WriteText(text, o.Getenv)
	}
	_, err := io.WriteString(s.Out, text)
	return err
}
