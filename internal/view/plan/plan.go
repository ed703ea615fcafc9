// Package plan shows what an operation would do: as text, JSON, YAML, Markdown, a
// page of HTML, or a graph of the order of work.
package plan

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"deployer/internal/deploy"
	"deployer/internal/view/output"
	"deployer/internal/view/page"
)

// Show writes to s.Out what op would do. Values of Secrets are never written,
// in no format. The error is that of writing.
func Show(s output.Streams, op *deploy.Operation, o page.Options) error {
	return newDocument(op).show(s, o)
}

// ShowSaved is Show for a plan that was written as JSON before.
func ShowSaved(s output.Streams, saved string, o page.Options) error {
	if o.Format == output.FormatJSON {
		_, err := io.WriteString(s.Data(), saved)
		return err
	}
	var d Document
	decoder := json.NewDecoder(strings.NewReader(saved))
	decoder.UseNumber() // what was 12345678901234567890 stays that
	if err := decoder.Decode(&d); err != nil {
		return fmt.Errorf("reading a plan: %w", err)
	}
	return d.show(s, o)
}

func (d Document) show(s output.Streams, o page.Options) error {
	switch o.Format {
	case output.FormatJSON, output.FormatYAML:
		return output.Encode(s.Out, o.Format, d)
	case page.FormatMarkdown:
		return page.Write(s, o, d.markdown(o))
	case page.FormatHTML:
		return d.html(o).Write(s.Out)
	case page.FormatMermaid:
		return page.Write(s, o, d.mermaid())
	case page.FormatDot:
		return page.Write(s, o, d.graphviz())
	}
	return page.Write(s, o, d.text(s.OutPalette(o.Colour), o))
}
