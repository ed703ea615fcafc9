// Package plan shows what an operation would do: as text, JSON, YAML, Markdown, a
// page of HTML, or a graph of the order of work.
package plan

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"deployer/internal/deploy"
	"deployer/internal/view/document"
	"deployer/internal/view/output"
)

// Show writes to s.Out what op would do. Values of Secrets are never written,
// in no format. The error is that of writing.
func Show(s output.Streams, op *deploy.Operation, o document.Options) error {
	return newDocument(op).show(s, o)
}

// ShowSaved is Show for a plan that was written as JSON before.
func ShowSaved(s output.Streams, saved string, o document.Options) error {
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

func (d Document) show(s output.Streams, o document.Options) error {
	switch o.Format {
	case output.FormatJSON, output.FormatYAML:
		return output.Encode(s.Out, o.Format, d)
	case document.FormatMarkdown:
		return document.Write(s, o, d.markdown(o))
	case document.FormatHTML:
		return d.html(o).Write(s.Out)
	case document.FormatMermaid:
		return document.Write(s, o, d.mermaid())
	case document.FormatDot:
		return document.Write(s, o, d.graphviz())
	}
	return document.Write(s, o, d.text(s.OutPalette(o.Colour), o))
}
