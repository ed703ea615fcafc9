package output

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"deployer/internal/view/textfmt"
)

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
