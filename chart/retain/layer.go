package retain

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/sets"

	"deployer/chart/internal/yamltext"
)

// A layer is a text with the tree of its parts.
type layer struct {
	format   format
	text     string
	root     *node
	comments node       // of YAML: comments on lines of their own, as items
	document *yaml.Node // of YAML
	recorded string     // the text that is recorded in its place, for the way in which it is written
}

type format int

const (
	inBase64 format = iota
	inYAML
	inLines
)

// final is the text of the layer with what was kept. Everything else stays as it was rendered. If only an order that is generated
// has changed, it is the recorded text.
func (l *layer) final() string {
	if l.recorded != "" && l.keepsOrder(l.recorded) {
		return l.recorded
	}
	return l.plainFinal()
}

func (l *layer) plainFinal() string {
	switch l.format {
	case inBase64:
		return encode64(l.root.final())
	case inLines:
		out, _ := l.splice(func(n *node) (span, bool) { return span{n.span[0], n.span[1], n.final()}, true })
		return out
	}
	for _, quoted := range []bool{false, true} {
		out, ok := l.splice(func(n *node) (span, bool) {
			if n.yaml == nil {
				return span{n.span[0], n.span[1], n.final()}, true
			}
			return l.scalarSpan(n, quoted)
		})
		if ok && l.hasFinalValues(out) {
			return out
		}
	}
	return l.encodedAgain()
}

// splice replaces the changed scalars in the text; false if there is one that isn't found in it.
func (l *layer) splice(spanOf func(*node) (span, bool)) (string, bool) {
	var spans []span
	ok := true
	collect := func(n *node) {
		if n.final() == n.text || n.yaml == nil && l.format == inYAML && n.span == [2]int{} {
			return
		}
		s, found := spanOf(n)
		spans, ok = append(spans, s), ok && found
	}
	l.root.each(collect)
	l.comments.each(collect)
	if !ok {
		return "", false
	}
	slices.SortFunc(spans, func(a, b span) int { return b.from - a.from })
	out := l.text
	for i, s := range spans {
		if i > 0 && s.to > spans[i-1].from {
			return "", false // it isn't where it seems to be
		}
		out = out[:s.from] + s.text + out[s.to:]
	}
	return out, true
}

// hasFinalValues reports whether a text in YAML decodes to what was kept.
func (l *layer) hasFinalValues(text string) bool {
	parsed := parseYAML(text)
	return parsed != nil && isFinal(l.root, parsed.root)
}

func isFinal(n, written *node) bool {
	if written == nil || n.kind != written.kind || len(n.children) != len(written.children) {
		return false
	}
	if n.kind == scalar {
		return n.final() == written.text && (n.tag != "!!str" || written.tag == "!!str")
	}
	for i, child := range n.children {
		if n.kind == fields && child.name != written.children[i].name || !isFinal(child, written.children[i]) {
			return false
		}
	}
	return true
}

// encodedAgain writes the layer in YAML where its own text can't be changed in place.
func (l *layer) encodedAgain() string {
	rendered := map[*yaml.Node]yaml.Node{} // which say how the text is written
	defer func() {
		for n, was := range rendered {
			*n = was
		}
	}()
	l.root.each(func(n *node) {
		if n.yaml != nil && n.final() != n.text {
			rendered[n.yaml] = *n.yaml
			if n.tag == "!!str" {
				n.yaml.SetString(n.final())
			} else {
				n.yaml.Value = n.final()
			}
		}
	})
	out, err := yaml.Marshal(l.document)
	if err != nil {
		return l.text
	}
	return string(out)
}

// parseYAML reads a text that is one map or list in YAML or JSON; nil if it is none.
func parseYAML(text string) *layer {
	d := yaml.NewDecoder(strings.NewReader(text))
	var document, more yaml.Node
	if d.Decode(&document) != nil || len(document.Content) != 1 || !errors.Is(d.Decode(&more), io.EOF) {
		return nil
	}
	l := &layer{format: inYAML, text: text, root: nodeOf(document.Content[0], map[*yaml.Node]bool{}, new(mostNodes)), document: &document}
	if l.root == nil || l.root.kind == scalar {
		return nil
	}
	l.comments.kind = items
	at := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			comment := strings.TrimRight(line, "\r\n")
			l.comments.children = append(l.comments.children, &node{text: comment, span: [2]int{at, at + len(comment)}, opened: true})
		}
		at += len(line)
	}
	return l
}

// mostNodes is how many nodes a text in YAML may have, of which aliases can make many.
const mostNodes = 1 << 20

// nodeOf returns the tree of a YAML node; nil for one that contains itself, or has more nodes than are left.
func nodeOf(n *yaml.Node, above map[*yaml.Node]bool, left *int) *node {
	if *left--; *left < 0 {
		return nil
	}
	switch n.Kind {
	case yaml.AliasNode:
		if above[n.Alias] {
			return nil
		}
		out := nodeOf(n.Alias, above, left)
		if out != nil {
			out.each(func(s *node) { s.yaml = nil })
		}
		return out
	case yaml.ScalarNode:
		return &node{text: n.Value, tag: n.ShortTag(), yaml: n}
	}
	above[n] = true
	defer delete(above, n)
	out := &node{kind: items}
	step := 1
	if n.Kind == yaml.MappingNode {
		out.kind, step = fields, 2
	}
	for i := step - 1; i < len(n.Content); i += step {
		child := nodeOf(n.Content[i], above, left)
		if child == nil {
			return nil
		}
		if out.kind == fields {
			key := n.Content[i-1]
			child.comment, child.behind = commentsOf(key), key.LineComment+" "
		}
		child.comment += commentsOf(n.Content[i])
		child.behind += n.Content[i].LineComment
		if out.kind == fields {
			out.add(n.Content[i-1].Value, child)
		} else {
			out.children = append(out.children, child)
		}
	}
	if out.kind == items {
		out.nameItems()
	}
	return out
}

// commentsOf are the lines of comments above and below a YAML node.
func commentsOf(n *yaml.Node) string { return n.HeadComment + "\n" + n.FootComment + "\n" }

// repeatsKeys reports whether a map below a node has a key twice: such a text isn't meant to be YAML, or says nothing certain.
func (n *node) repeatsKeys() bool {
	names := sets.Set[string]{}
	for _, child := range n.children {
		names.Insert(child.name)
	}
	return n.kind == fields && names.Len() < len(n.children) || slices.ContainsFunc(n.children, (*node).repeatsKeys)
}

// A span is a range of text and its replacement.
type span struct {
	from, to int
	text     string
}

// scalarSpan returns the range of a scalar in YAML, and its final text in the style of the scalar. quoted says that it is
// written in quotes also where YAML needs none.
func (l *layer) scalarSpan(of *node, quoted bool) (span, bool) {
	text, n := l.text, of.yaml
	from, ok := yamltext.NodeOffset(text, n)
	if !ok || n.Anchor != "" {
		return span{}, false
	}
	value := of.final()
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		to := yamltext.ClosingQuote(text, from, `"`, `\`)
		return span{from, to + 1, doubleQuoted(value, text+l.recorded)}, to < len(text)
	case n.Style&yaml.SingleQuotedStyle != 0:
		to := yamltext.ClosingQuote(text, from, "'", "''")
		if quoted || strings.ContainsAny(value, "\n\r\t") {
			return span{from, to + 1, doubleQuoted(value, text+l.recorded)}, to < len(text)
		}
		return span{from, to + 1, "'" + strings.ReplaceAll(value, "'", "''") + "'"}, to < len(text)
	case n.Style&yaml.FoldedStyle != 0:
		return span{}, false
	case n.Style&yaml.LiteralStyle != 0:
		return l.blockSpan(from+strings.IndexByte(text[from:], '\n')+1, of.text, value), true
	}
	if !strings.HasPrefix(text[from:], n.Value) {
		return span{}, false
	}
	if of.tag == "!!str" && (quoted || value == "" || strings.Contains(value, "\n")) {
		value = doubleQuoted(value, text+l.recorded)
	}
	return span{from, from + len(n.Value), value}, true
}

// doubleQuoted writes text as JSON does. Some encoders escape <, > and & too, as can be seen in the text around it.
func doubleQuoted(s, around string) string {
	if strings.Contains(around, `\u003c`) || strings.Contains(around, `\u003e`) || strings.Contains(around, `\u0026`) {
		if escaped, err := json.Marshal(s); err == nil {
			return string(escaped)
		}
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(s) != nil {
		return fmt.Sprintf("%q", s)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// blockSpan is the range of a literal block, which begins at a line of the text and has a value, and the block with a final value.
func (l *layer) blockSpan(at int, value, final string) span {
	written := strings.Split(l.text[at:], "\n")
	before, lines := strings.Split(strings.TrimRight(value, "\n"), "\n"), strings.Split(strings.TrimRight(final, "\n"), "\n")
	written = written[:min(len(before), len(written))]
	indent := ""
	for _, line := range written {
		if strings.TrimSpace(line) != "" {
			indent = line[:indentation(line)]
			break
		}
	}
	for i, line := range lines {
		switch {
		case i < len(written) && line == before[i]:
			lines[i] = written[i] // also with the blank characters of an empty line
		case line != "":
			lines[i] = indent + line
		}
	}
	return span{at, at + len(strings.Join(written, "\n")), strings.Join(lines, "\n")}
}

func encode64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func decode64(text string) (string, error) {
	plain, err := base64.StdEncoding.DecodeString(text)
	return string(plain), err
}
