package page

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"deployer/internal/view/textfmt"
)

//go:embed page.html
var pageTemplate string

// A Count is a number at the head of the page.
type Count struct {
	N           int
	Class, Word string
}

// A Box is a step in the picture of the order of work.
type Box struct {
	Title string
	Lines []BoxLine
}

// A BoxLine is a line in a box.
type BoxLine struct {
	Sign, Text string
	Class      string
	Anchor     string // of the entry that it is about; empty for what isn't one object
}

// Anchor names an entry within the page, by the places of its section and of
// itself in the section.
func Anchor(section, entry int) string { return fmt.Sprintf("o%d-%d", section, entry) }

// maxUnfolded is how many entries with lines are unfolded at first; with more all are
// folded.
const maxUnfolded = 40

// HTML writes one page that needs nothing else. All text in it is escaped by
// html/template.
func (p Page) HTML(w io.Writer) error {
	t, err := template.New("page").Funcs(template.FuncMap{"anchor": Anchor, "sign": func(b byte) string { return string(b) }}).Parse(pageTemplate)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, textfmt.Harmless(p)); err != nil {
		return err
	}
	_, err = b.WriteTo(w)
	return err
}

// Open reports whether the entries are unfolded at first.
func (p Page) Open() bool {
	folded := 0
	for _, section := range p.Sections {
		for _, entry := range section.Entries {
			if len(entry.Lines) > 0 {
				folded++
			}
		}
	}
	return folded <= maxUnfolded
}

// HTMLClass names the line for the style sheet.
func (l Line) HTMLClass() string {
	return map[byte]string{'+': "added", '-': "removed", '~': "changed", '?': "remark", ' ': "context"}[l.Sign]
}

// HTMLSign is the sign as it is shown: remarks have none.
func (l Line) HTMLSign() string {
	if l.Sign == '?' {
		return " "
	}
	return string(l.Sign)
}
