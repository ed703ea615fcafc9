package retain

import (
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// A node is a part of a text: fields, items of a list or lines, or a scalar. The text of a scalar may have parts itself.
type node struct {
	kind     kind
	children []*node

	// What tells it from those beside it. Of a field all of these are its key.
	name  string // what no other one has; empty for an item that only all of its content tells apart
	label string // what that says: the key of a line, or the value of a name
	owner string // the key by which it may say whose those beside it are

	text      string     // of a scalar, decoded
	tag       string     // of a scalar in YAML, such as !!int
	span      [2]int     // of a piece of a line or file in the text of its layer
	yaml      *yaml.Node // of a scalar in YAML; nil for an alias, which has its text from elsewhere
	isData    bool       // it is base64, as in the data of a Secret
	isHeader  bool       // it is the line that begins a block
	isComment bool       // it is a line of a comment
	comment   string     // of what is in a text: the comments above it, and in YAML below it
	behind    string     // and in YAML the one behind it

	// What has been found out about it; see child, identities and segmentsOfLine.
	index      map[string]int
	identities map[string]*node
	byPosition *positions
	split      segments
	splitWith  *node

	opened bool // inner is set, or there is nothing to open
	inner  *layer

	// What was found by comparing renderings. At most one of them is set, and neither for what the chart states.
	place    *place   // all of the text is generated
	segments segments // parts of a line are generated
	// reorderable says that the order of the items is another one in each rendering.
	reorderable bool
}

type kind int

const (
	scalar kind = iota
	fields
	items
)

// child returns the first child with a name; nil if there is none.
func (n *node) child(name string) *node {
	if i := n.childIndex(name); i >= 0 {
		return n.children[i]
	}
	return nil
}

// childIndex returns the position of the first child with a name; -1 if there is none.
func (n *node) childIndex(name string) int {
	if n == nil || name == "" && n.kind == items {
		return -1
	}
	if n.index == nil {
		n.index = map[string]int{}
		for i, child := range slices.Backward(n.children) {
			n.index[child.name] = i
		}
	}
	if i, found := n.index[name]; found {
		return i
	}
	return -1
}

// add adds a field to fields.
func (n *node) add(key string, field *node) {
	field.name, field.label, field.owner = key, key, key
	n.children, n.index = append(n.children, field), nil
}

// at returns the node at a path of keys; nil if there is none.
func (n *node) at(keys ...string) *node {
	for _, key := range keys {
		n = n.child(key)
	}
	return n
}

// equal reports whether two nodes were rendered alike.
func equal(a, b *node) bool {
	if a == nil || b == nil || a.kind != b.kind || a.text != b.text || a.tag != b.tag || len(a.children) != len(b.children) {
		return a == b
	}
	for i, child := range a.children {
		other := b.children[i]
		if a.kind == fields {
			if other = b.child(child.name); other == nil {
				return false
			}
		}
		if !equal(child, other) {
			return false
		}
	}
	return true
}

// sameInAll reports whether all nodes are equal to the first.
func sameInAll(versions []*node) bool {
	return !slices.ContainsFunc(versions[1:], func(other *node) bool { return !equal(versions[0], other) })
}

// final is the text of a scalar with what was kept.
func (n *node) final() string {
	switch {
	case n.place != nil:
		return n.place.final
	case n.segments != nil:
		var b strings.Builder
		for _, s := range n.segments {
			b.WriteString(s.node.final())
		}
		return b.String()
	case n.inner != nil:
		return n.inner.final()
	}
	return n.text
}

// each calls do for each scalar below a node.
func (n *node) each(do func(*node)) {
	if n.kind == scalar {
		do(n)
	}
	for _, child := range n.children {
		child.each(do)
	}
}

// isLine reports whether a node is a line of a text.
func (n *node) isLine() bool { return n.kind == scalar && n.span != [2]int{} }

// open decodes the text of a scalar: base64, YAML and JSON, or the lines of another file. It returns nil if there is nothing to
// decode.
func (n *node) open() *layer {
	if n.kind != scalar || n.opened {
		return n.inner
	}
	n.opened = true
	switch plain, err := base64.StdEncoding.DecodeString(n.text); {
	case n.tag != "" && n.tag != "!!str":
		return nil
	case err == nil && len(plain) > 0 && (n.isData || len(n.text) >= 16 && isReadable(plain)):
		n.inner = &layer{format: inBase64, text: n.text, root: &node{text: string(plain)}}
	case utf8.ValidString(n.text) && strings.ContainsAny(n.text, ":[{"):
		if n.inner = parseYAML(n.text); n.inner != nil && n.inner.root.repeatsKeys() {
			n.inner = nil
		}
	}
	if n.inner == nil && strings.Contains(n.text, "\n") && utf8.ValidString(n.text) && !n.isPEM() {
		n.inner = parseLines(n.text)
	}
	return n.inner
}

// isPEM reports whether a text is one PEM block.
func (n *node) isPEM() bool {
	text := strings.TrimSpace(n.text)
	return strings.HasPrefix(text, "-----BEGIN ") && pemBlock().FindString(text) == text
}

// isReadable reports whether data is text without control characters.
func isReadable(b []byte) bool {
	return utf8.Valid(b) && !slices.ContainsFunc(b, func(c byte) bool {
		return c < ' ' && c != '\n' && c != '\r' && c != '\t' || c == 0x7f
	})
}

// openAll opens all versions of a scalar. It returns nil unless all of them have the same format.
func openAll(versions []*node) []*node {
	var out []*node
	for _, n := range versions {
		l := n.open()
		if l == nil || l.format != versions[0].inner.format || len(l.comments.children) != len(versions[0].inner.comments.children) {
			return nil
		}
		out = append(out, l.root)
	}
	if versions[0].inner.format == inYAML && !haveSameKeys(out) {
		for _, n := range versions {
			if n.inner = nil; strings.Contains(n.text, "\n") {
				n.inner = parseLines(n.text)
			}
		}
		return openAll(versions)
	}
	return out
}

// haveSameKeys reports whether none of the keys of texts in YAML is generated; otherwise they aren't meant to be YAML, as in
// name:password:::
func haveSameKeys(roots []*node) bool {
	return !slices.ContainsFunc(roots[1:], func(n *node) bool {
		return n.kind == fields && roots[0].kind == fields && slices.ContainsFunc(n.children, func(field *node) bool { return roots[0].child(field.name) == nil })
	})
}

// recordedIn returns the root of what a recorded scalar consists of; nil if it has another format.
func recordedIn(n *node, as *layer) *layer {
	if n == nil || n.kind != scalar {
		return nil
	}
	if as.format == inBase64 { // text that isn't readable may be random data
		if plain, err := base64.StdEncoding.DecodeString(n.text); err == nil {
			return &layer{format: inBase64, text: n.text, root: &node{text: string(plain)}}
		}
		return nil
	}
	l := n.open()
	if l != nil && l.format == inYAML && as.format == inLines { // see openAll
		l = parseLines(n.text)
	}
	if l == nil || l.format != as.format {
		return nil
	}
	return l
}
