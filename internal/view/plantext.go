package view

import (
	"fmt"
	"io"

	"github.com/fatih/color"

	"deployer/internal/view/output"
	"deployer/internal/view/textfmt"
)

// planText writes a plan for people.
func planText(w io.Writer, s output.Streams, d planDocument, o PlanOptions) error {
	p := s.Palette(o.Colour, s.OutTTY)
	paint := painter(p)
	fmt.Fprintf(w, "%s\n\n", p.Bold.Sprint(d.title()))
	blocks := d.blocks(o, everything)
	if !o.Full && length(blocks) > longPlan {
		blocks = d.blocks(o, longPlan)
		defer fmt.Fprintln(w, "This plan is made shorter to be read: --full shows all of it, -o html folds it.")
	}
	for _, b := range blocks {
		blockText(w, p, paint, b.heading(), b.lines)
	}
	if len(blocks) > 0 {
		fmt.Fprintln(w)
	}
	for _, warning := range told(d.Warnings) {
		output.PrintWarning(w, p, warning)
	}
	_, err := fmt.Fprintln(w, p.Bold.Sprint(d.conclusion()))
	return err
}

// conclusion is the summary, in fewer words when there is nothing to do.
func (d planDocument) conclusion() string {
	if d.HasChanges {
		return d.Summary.sentence()
	}
	text := "No changes."
	if n := d.Summary.Unchanged; n > 0 {
		text += " " + textfmt.Count(n, "object") + " unchanged."
	}
	if n := d.Summary.Keep; n > 0 {
		text += " " + textfmt.Count(n, "object") + " kept."
	}
	if n := d.Summary.Kept; n > 0 {
		text += " " + textfmt.Count(n, "generated value") + " kept."
	}
	return text
}

func blockText(w io.Writer, p output.Palette, paint map[byte]*color.Color, h heading, lines []planLine) {
	sign, words, source := string(h.sign), h.words, ""
	if c := paint[h.sign]; c != nil {
		sign, words = c.Sprint(sign), c.Sprint(words)
	}
	if h.source != "" {
		source = "   " + p.Faint.Sprint("("+h.source+")")
	}
	fmt.Fprintf(w, "%s %s   %s%s\n", sign, p.Bold.Sprint(h.name), words, source)
	for _, l := range lines {
		switch l.Sign {
		case '+', '-':
			fmt.Fprintf(w, "  %s %s\n", paint[l.Sign].Sprint(string(l.Sign)), l.Text)
		case '?':
			fmt.Fprintf(w, "    %s\n", p.Warn.Sprint(l.Text))
		default:
			fmt.Fprintf(w, "    %s\n", l.Text)
		}
	}
}

// painter gives each sign its colour.
func painter(p output.Palette) map[byte]*color.Color {
	return map[byte]*color.Color{
		'+': p.Good, '-': p.Bad, '~': p.Warn, '!': p.Bad, '=': p.Faint, ' ': p.Faint,
	}
}
