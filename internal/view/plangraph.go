package view

import (
	"fmt"
	"io"
	"strings"

	"deployer/apply"
	"deployer/internal/view/textfmt"
)

// maxBox is how many objects of a stage a picture names; the rest is counted.
const maxBox = 12

// A box is one stage in a picture of the order of work.
type box struct {
	Title string
	Lines []boxLine
}

type boxLine struct {
	Sign string // of the action
	Text string
	Kind string // the action, for colours
	at   int    // which object of the stage
}

// boxes are the stages of a plan in order; what stays as it is, is counted.
func (d planDocument) boxes() []box {
	out := make([]box, 0, len(d.Stages))
	for _, stage := range d.Stages {
		b := box{Title: stage.Name, Lines: awaited(stage)}
		left, unchanged := 0, 0
		for i, o := range stage.Objects {
			switch {
			case o.sign() == ' ':
				unchanged++
			case len(b.Lines) >= maxBox+min(len(stage.After), maxBox+1):
				left++
			default:
				b.Lines = append(b.Lines, boxLine{Sign: string(o.sign()), Text: textfmt.Line(o.Object) + o.goesAfter(), Kind: o.Action, at: i})
			}
		}
		if left > 0 {
			b.Lines = append(b.Lines, boxLine{Sign: " ", Text: fmt.Sprintf("%d more", left), Kind: "more"})
		}
		if unchanged > 0 {
			b.Lines = append(b.Lines, boxLine{Sign: " ", Text: fmt.Sprintf("%d unchanged", unchanged), Kind: "more"})
		}
		out = append(out, b)
	}
	return out
}

// goesAfter says what of its own stage an object's deletion waits for.
func (o planObject) goesAfter() string {
	switch {
	case o.Action != string(apply.Delete) || len(o.After) == 0:
		return ""
	case len(o.After) == 1:
		return " after " + textfmt.Line(o.After[0].Object)
	}
	return fmt.Sprintf(" after %s and %d more", textfmt.Line(o.After[0].Object), len(o.After)-1)
}

// awaited says what a stage waits for.
func awaited(s planStage) []boxLine {
	var out []boxLine
	word := "after"
	if s.Kind == "wait" {
		word = "until"
	}
	for i, n := range s.After {
		if i == maxBox {
			return append(out, boxLine{Sign: " ", Text: fmt.Sprintf("%s %d more", word, len(s.After)-i), Kind: "more"})
		}
		out = append(out, boxLine{Sign: " ", Text: textfmt.Line(word + " " + n.String()), Kind: "more"})
	}
	return out
}

// planMermaid writes the order of work as a Mermaid flowchart.
// https://mermaid.js.org/syntax/flowchart.html
func planMermaid(w io.Writer, d planDocument) error {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	for i, stage := range d.boxes() {
		fmt.Fprintf(&b, "  subgraph s%d[\"%s\"]\n    direction TB\n", i, mermaid(stage.Title))
		for j, l := range stage.Lines {
			fmt.Fprintf(&b, "    s%do%d[\"%s\"]\n", i, j, mermaid(strings.TrimSpace(l.Sign+" "+l.Text)))
		}
		b.WriteString("  end\n")
		if i > 0 {
			fmt.Fprintf(&b, "  s%d --> s%d\n", i-1, i)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// mermaid writes text for use between quotes: all that could mean something, also
// in Markdown, becomes a numeric entity. A dash at the beginning would be a list,
// which isn't drawn (https://github.com/mermaid-js/mermaid-live-editor/issues/1664).
func mermaid(s string) string {
	var b strings.Builder
	for i, r := range s {
		if strings.ContainsRune("\"#<>&;`\\*_~[](){}|%$", r) || i == 0 && strings.ContainsRune("+-", r) {
			fmt.Fprintf(&b, "#%d;", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// planDot writes the order of work in the language of Graphviz.
// https://graphviz.org/doc/info/lang.html
func planDot(w io.Writer, d planDocument) error {
	var b strings.Builder
	b.WriteString("digraph plan {\n  rankdir=LR;\n  node [shape=box, fontname=\"monospace\"];\n")
	for i, stage := range d.boxes() {
		label := dot(stage.Title) + `\n\n`
		for _, l := range stage.Lines {
			label += dot(strings.TrimSpace(l.Sign+" "+l.Text)) + `\l`
		}
		fmt.Fprintf(&b, "  s%d [label=\"%s\"];\n", i, label)
		if i > 0 {
			fmt.Fprintf(&b, "  s%d -> s%d;\n", i-1, i)
		}
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func dot(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s)
}
