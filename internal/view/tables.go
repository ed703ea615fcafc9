package view

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
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

// Encode writes a value as JSON or YAML, as Helm does: JSON on one line.
func Encode(w io.Writer, f Format, value any) error {
	w = unfiltered(w) // data is for programs, and escaped
	data, err := marshal(value)
	if err != nil {
		return err
	}
	if f == FormatYAML {
		if data, err = yaml.JSONToYAML(data); err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", data)
	return err
}

// Table writes rows under their headings the way Helm's tables look: columns
// set apart by a tab, as wide as their widest cell. No headings, no heading row.
func Table(w io.Writer, headings []string, rows [][]string) error {
	if len(headings) > 0 {
		rows = append([][]string{headings}, rows...)
	}
	rows = harmlessCells(rows)
	widths := map[int]int{}
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			if i > 0 {
				line.WriteByte('\t')
			}
			line.WriteString(cell)
			line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)))
		}
		if _, err := fmt.Fprintln(w, line.String()); err != nil {
			return err
		}
	}
	return nil
}

// harmlessCells takes control characters out of what may come from a cluster.
func harmlessCells(rows [][]string) [][]string {
	out := make([][]string, len(rows))
	for i, row := range rows {
		out[i] = make([]string, len(row))
		for j, cell := range row {
			out[i][j] = strings.ReplaceAll(block(cell), "\n", " ")
		}
	}
	return out
}
