package plan

import (
	"fmt"
	"strings"

	"deployer/apply/decide"
	"deployer/internal/deploy"
	"deployer/internal/view/page"
	"deployer/internal/view/textfmt"
)

// maxBoxLines is how many objects of a step a picture names; the rest is counted.
const maxBoxLines = 12

// boxes are the steps of a plan as boxes in order, with links to the entries of
// what they name. Unchanged objects are counted.
func (d Document) boxes() []page.Box {
	out := make([]page.Box, 0, len(d.Steps))
	for i, s := range d.Steps {
		box := page.Box{Title: s.Name, Lines: s.waitLines()}
		omitted, unchanged := 0, 0
		for j, o := range s.Objects {
			switch {
			case o.sign() == ' ':
				unchanged++
			case len(box.Lines) >= maxBoxLines+min(len(s.After), maxBoxLines+1):
				omitted++
			default:
				box.Lines = append(box.Lines, page.BoxLine{Sign: string(o.sign()), Text: o.Object + o.deletedAfter(), Class: string(o.Action), Anchor: page.Anchor(i, j)})
			}
		}
		if omitted > 0 {
			box.Lines = append(box.Lines, remarkLine("%d more", omitted))
		}
		if unchanged > 0 {
			box.Lines = append(box.Lines, remarkLine("%d unchanged", unchanged))
		}
		out = append(out, box)
	}
	return textfmt.Harmless(out)
}

// remarkLine is a line in a box that is about no single object.
func remarkLine(format string, args ...any) page.BoxLine {
	return page.BoxLine{Sign: " ", Text: fmt.Sprintf(format, args...), Class: "more"}
}

// deletedAfter names the objects of the same step that must be deleted first.
func (o object) deletedAfter() string {
	if o.Action != decide.Delete || len(o.After) == 0 {
		return ""
	}
	return " after " + o.After[0].Object + textfmt.AndMore(len(o.After)-1)
}

// waitLines say what a step waits for.
func (s step) waitLines() []page.BoxLine {
	var out []page.BoxLine
	word := "after"
	if s.Kind == deploy.StepWait {
		word = "until"
	}
	for i, n := range s.After {
		if i == maxBoxLines {
			return append(out, remarkLine("%s %d more", word, len(s.After)-i))
		}
		out = append(out, remarkLine("%s %s", word, n))
	}
	return out
}

// mermaid is the order of work as a Mermaid flowchart.
// https://mermaid.js.org/syntax/flowchart.html
func (d Document) mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	for i, box := range d.boxes() {
		fmt.Fprintf(&b, "  subgraph s%d[\"%s\"]\n    direction TB\n", i, escapeMermaid(box.Title))
		for j, l := range box.Lines {
			fmt.Fprintf(&b, "    s%do%d[\"%s\"]\n", i, j, escapeMermaid(strings.TrimSpace(l.Sign+" "+l.Text)))
		}
		b.WriteString("  end\n")
		if i > 0 {
			fmt.Fprintf(&b, "  s%d --> s%d\n", i-1, i)
		}
	}
	return b.String()
}

// escapeMermaid writes text for use between quotes: all that could mean something,
// also in Markdown, becomes a numeric entity. A dash at the beginning would be a list,
// which isn't drawn (https://github.com/mermaid-js/mermaid-live-editor/issues/1664).
func escapeMermaid(s string) string {
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

// graphviz is the order of work in the language of Graphviz.
// https://graphviz.org/doc/info/lang.html
func (d Document) graphviz() string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace
	var b strings.Builder
	b.WriteString("digraph plan {\n  rankdir=LR;\n  node [shape=box, fontname=\"monospace\"];\n")
	for i, box := range d.boxes() {
		label := escape(box.Title) + `\n\n`
		for _, l := range box.Lines {
			label += escape(strings.TrimSpace(l.Sign+" "+l.Text)) + `\l`
		}
		fmt.Fprintf(&b, "  s%d [label=\"%s\"];\n", i, label)
		if i > 0 {
			fmt.Fprintf(&b, "  s%d -> s%d;\n", i-1, i)
		}
	}
	b.WriteString("}\n")
	return b.String()
}
