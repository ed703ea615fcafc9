package yamltext

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A Document is one YAML document of a manifest.
type Document struct {
	Source      string // the template; empty when not known
	Text        string
	Line        int // line of the manifest on which Text begins, from 1
	LinesBefore int // lines of Text before the template's own output
}

// SplitManifest splits a manifest at its document separators: lines that begin with three
// dashes. Dashes inside a block scalar are indented and don't count. A document without a
// source comment belongs to the source comment before its separator, since CRD files often
// begin with a separator, or else to source.
func SplitManifest(manifest, source string) []Document {
	var out []Document
	start, at, line := 0, 0, 0
	first, head := 1, 0
	inherited := source
	finish := func() {
		d := Document{Source: inherited, Text: manifest[start:at], Line: first, LinesBefore: head}
		if d.readSource() {
			out = append(out, d)
			inherited = source
		} else {
			inherited = d.Source
		}
	}
	for text := range strings.Lines(manifest) {
		line++
		if isSeparator(text) {
			finish()
			start, first, head = at+len("---"), line, 1
		}
		at += len(text)
	}
	finish()
	return out
}

// isSeparator reports whether a line separates documents: --- begins one, and ... ends one.
func isSeparator(line string) bool {
	if !strings.HasPrefix(line, "---") && !strings.HasPrefix(line, "...") {
		return false
	}
	return len(line) == 3 || strings.IndexByte(" \t\r\n", line[3]) >= 0
}

// readSource finds the source comment at the head of a document and tells
// whether there is more in it than blank lines, comments and YAML directives.
func (d *Document) readSource() bool {
	const mark = "# Source: "
	lines, named := 0, false
	for line := range strings.Lines(d.Text) {
		trimmed := strings.TrimSpace(line)
		lines++
		switch {
		case trimmed == "" || trimmed[0] == '%' && line[0] == '%':
		case trimmed[0] != '#':
			return true
		case !named && strings.HasPrefix(trimmed, mark):
			d.Source, d.LinesBefore, named = strings.TrimPrefix(trimmed, mark), lines, true
		}
	}
	return false
}

// RewriteDocuments replaces the text of each document of a manifest, which includes its
// source comment, and leaves separators and blank documents as they are.
func RewriteDocuments(manifest string, change func(text string) string) string {
	var out strings.Builder
	for _, d := range SplitManifest(manifest, "") {
		at := strings.Index(manifest, d.Text)
		out.WriteString(manifest[:at])
		manifest = manifest[at+len(d.Text):]
		out.WriteString(change(d.Text))
	}
	return out.String() + manifest
}

// IgnoredDocuments says which documents of a values file don't count: all that aren't empty after the first one. It is empty if
// there are none.
func IgnoredDocuments(text string) string {
	if !strings.Contains(text, "\n---") && !strings.Contains(text, "\n...") {
		return ""
	}
	var ignored []string
	d := yaml.NewDecoder(strings.NewReader(text))
	for n := 1; ; n++ {
		var document yaml.Node
		err := d.Decode(&document)
		switch {
		case errors.Is(err, io.EOF), err != nil && n == 1: // who reads the first one reports its error
			return strings.Join(ignored, ", ")
		case err != nil:
			return strings.Join(append(ignored, fmt.Sprintf("document %d", n)), ", ")
		case n > 1 && len(document.Content) > 0 && document.Content[0].Tag != "!!null":
			ignored = append(ignored, fmt.Sprintf("document %d (line %d)", n, document.Content[0].Line))
		}
	}
}
