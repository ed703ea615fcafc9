package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"deployer/internal/view/textfmt"
)

// Format is how a result is written.
type Format string

// The formats of -o.
const (
	FormatTable Format = "table"
	FormatJSON  Format = "json"
	FormatYAML  Format = "yaml"
)

// ParseFormat accepts what -o accepts; empty means a table.
func ParseFormat(s string) (Format, error) {
	switch f := Format(s); f {
	case "":
		return FormatTable, nil
	case FormatTable, FormatJSON, FormatYAML:
		return f, nil
	}
	return "", fmt.Errorf("invalid format type %q: use table, json or yaml", s)
}

// JSONVersion is the version of all our JSON documents and events. It changes
// when a field is renamed or changes its meaning, which is to say never.
const JSONVersion = 1

// marshalJSON encodes a value as JSON on one line that is safe for terminals and CI logs: it
// also escapes control characters that JSON doesn't, and commands of CI systems.
func marshalJSON(value any) ([]byte, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	data = command().ReplaceAll(data, []byte(`#\u0023${1}`))
	if !bytes.ContainsFunc(data, textfmt.IsControl) {
		return data, nil
	}
	var b bytes.Buffer
	for _, r := range string(data) {
		if textfmt.IsControl(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.Bytes(), nil
}

// Encode writes a value as JSON or YAML, as Helm does: JSON on one line.
func Encode(w io.Writer, f Format, value any) error {
	w = unfiltered(w) // data is for programs: JSON is escaped, YAML is written as it is (docs/output.md)
	data, err := marshalJSON(value)
	if err != nil {
		return err
	}
	if f == FormatYAML {
		data, err = yaml.JSONToYAML(data)
	} else {
		data = append(data, '\n')
	}
	if err == nil {
		_, err = w.Write(data)
	}
	return err
}

// Table writes rows under their headings the way Helm's tables look: columns
// set apart by a tab, as wide as their widest cell. No headings, no heading row. It cleans the
// cells of rows.
func Table(w io.Writer, headings []string, rows [][]string) error {
	return StatusTable(w, Palette{}, -1, headings, rows)
}

// StatusTable writes a table like Table, with the statuses in one of its columns painted.
func StatusTable(w io.Writer, p Palette, column int, headings []string, rows [][]string) error {
	if len(headings) > 0 {
		rows = append([][]string{headings}, rows...)
	}
	widths := map[int]int{}
	for _, row := range rows {
		for i, cell := range row {
			cell = strings.ReplaceAll(textfmt.CleanText(cell), "\n", " ") // it may come from a cluster
			row[i] = cell
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		for i, cell := range row {
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == column {
				cell = p.Status(cell)
			}
			row[i] = cell + padding
		}
		if _, err := fmt.Fprintln(w, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return nil
}

// ClipCells shortens cells to a width, as Helm's tables do; 0 leaves them.
func ClipCells(rows [][]string, width int) [][]string {
	for _, row := range rows {
		for i, cell := range row {
			row[i] = Clip(cell, width)
		}
	}
	return rows
}

// Clip shortens a cell to a width in characters; 0 leaves it.
func Clip(cell string, width int) string {
	if runes := []rune(cell); width > 3 && len(runes) > width {
		return string(runes[:width-3]) + "..."
	}
	return cell
}
