package retain

import (
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// A node is a part of a text: fields by their keys, items of a list, or a scalar. The text of a scalar may have parts
// itself.
type node struct {
	kind     kind
	keys     []string // of fields, for each child
	children []*node

	text      string     // of a scalar, decoded
	tag       string     // of a scalar in YAML, such as !!int
	span      [2]int     // of a piece of a line or file in the text of its layer
	yaml      *yaml.Node // of a scalar in YAML; nil for an alias, which has its text from elsewhere
	isData    bool       // it is base64, as in the data of a Secret
	isHeader  bool       // it is the line that begins a block
	isComment bool       // it is a line of a comment
	comment   string     // of a field or item in YAML: what stands in comments above and below it
	behind    string     // and in the one behind it

	// What has been found out about it; see child, lineKeyOf and identities.
	index      map[string]int // positions of the first indexed keys
	indexed    int
	key        *string
	ownerKey   *string
	owners     map[string]*node
	byPosition *positions
	ownersAt   *[2][]int // see ownerFields
	split      segments  // see segmentsOfLine
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

// child returns the value of a key; nil if there is none.
func (n *node) child(key string) *node {
	if n == nil || n.kind != fields {
		return nil
	}
	if n.index == nil {
		n.index = map[string]int{}
	}
	for ; n.indexed < len(n.keys); n.indexed++ {
		if _, repeated := n.index[n.keys[n.indexed]]; !repeated {
			n.index[n.keys[n.indexed]] = n.indexed
		}
	}
	if i, found := n.index[key]; found {
		return n.children[i]
	}
	return nil
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
			if other = b.child(a.keys[i]); other == nil {
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
		return n.kind == fields && roots[0].kind == fields && slices.ContainsFunc(n.keys, func(key string) bool { return roots[0].child(key) == nil })
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
