package e2e

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"regexp"
	"strings"
)

// What a drawn terminal looks like.
const (
	cellWidth, lineHeight, margin = 8, 18, 16
	mostCells                     = 118
)

// colourOf is the colour of a line as the program paints it on a terminal.
var colourOf = []struct {
	begins *regexp.Regexp
	class  string
}{
	{regexp.MustCompile(`^\$ `), "command"},
	{regexp.MustCompile(`^(  )?\+ `), "good"},
	{regexp.MustCompile(`^(  )?- `), "bad"},
	{regexp.MustCompile(`^~ `), "warn"},
	{regexp.MustCompile(`^✓|^\d\d:\d\d (ready|hook) `), "good"},
	{regexp.MustCompile(`^✗|^FAILED|^\d\d:\d\d FAILED`), "bad"},
	{regexp.MustCompile(`^\d\d:\d\d (problem|warn) `), "warn"},
	{regexp.MustCompile(`^\.\.\.$`), "faint"},
}

// draw makes a picture of a terminal with these lines, in SVG.
func draw(lines []string) string {
	var rows []string
	for _, line := range lines {
		rows = append(rows, strings.TrimRight(line, " "))
	}
	for len(rows) > 0 && rows[len(rows)-1] == "" {
		rows = rows[:len(rows)-1]
	}
	var b strings.Builder
	width, height := mostCells*cellWidth+2*margin, len(rows)*lineHeight+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="A terminal session with deployer">
<style>
rect { fill: #1b1f24 }
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; fill: #d0d7de; white-space: pre }
.command { fill: #ffffff; font-weight: bold }
.good { fill: #4ac26b }
.bad { fill: #ff8182 }
.warn { fill: #d4a72c }
.faint { fill: #8c959f }
</style>
<rect width="100%%" height="100%%" rx="8"/>
`, width, height, width, height)
	for i, row := range rows {
		if row == "" {
			continue
		}
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\"%s xml:space=\"preserve\">%s</text>\n", margin, margin+(i+1)*lineHeight-5, classOf(row), escaped(shortened(row)))
	}
	return b.String() + "</svg>\n"
}

func classOf(row string) string {
	for _, c := range colourOf {
		if c.begins.MatchString(row) {
			return fmt.Sprintf(" class=%q", c.class)
		}
	}
	return ""
}

func shortened(row string) string {
	if cells := []rune(row); len(cells) > mostCells {
		return string(cells[:mostCells-1]) + "…"
	}
	return row
}

func escaped(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a buffer takes everything
	return b.String()
}
