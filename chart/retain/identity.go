package retain

import (
	"slices"
	"strings"
)

// A branch is the versions of a node with children, the rendered one first, and what is recorded of it. A child is recognised by its
// name, or by everything that is fixed in it, never by its position.
type branch struct {
	versions  []*node
	old       *node     // nil if nothing is recorded
	columns   [][]*node // the versions of each child; nil for a field that isn't there each time
	inText    bool
	onlyUses  bool // it is in a workload, whose values are also where they belong
	unchanged bool // nothing but generated values has changed in the release, so that also the positions are the same

	owners   map[string]*ownership // see ownerships
	ofBlocks *blocksOf             // see blocks
}

// recorded returns the recorded child that is certain to be the same one as a child, the one at i; otherwise nil, and why:
//   - the one with its name, if nothing else in it that says whose it is has changed,
//   - the only generated one among others that are all the same,
//   - or the only one with everything that is fixed in it.
func (b *branch) recorded(n *node, i int) (found *node, missing string) {
	if b.old == nil || !b.isList() {
		return b.old.child(n.name), ""
	}
	column := b.columns[i]
	if found = b.old.child(fixedName(column)); found != nil {
		if !b.onlyUses && !n.hasSameIdentities(column, found) || !headersFit(column, found) {
			return nil, missingOwner
		}
		return found, ""
	}
	if b.unchanged && len(b.old.children) == len(b.columns) {
		return b.old.children[i], ""
	}
	if !hasFixedWords(column) {
		if b.othersFit() { // its path says what it is
			return b.old.children[i], ""
		}
		return nil, missingEntry
	}
	label := fixedLabel(column)
	fitting := func(list []*node) (out []*node) {
		for _, candidate := range list {
			if len(out) < 2 && (label == "" || candidate.kind != scalar || candidate.label == label) && fits(column, candidate) {
				out = append(out, candidate)
			}
		}
		return out
	}
	if old := fitting(b.old.children); len(old) == 1 && len(fitting(b.versions[0].children)) == 1 {
		return old[0], ""
	}
	return nil, missingEntry
}

// fixedName and fixedLabel are the name and the label of a child that has the same one in all renderings; otherwise they are empty.
func fixedName(column []*node) string { return sameOf(column, func(n *node) string { return n.name }) }

func fixedLabel(column []*node) string {
	return sameOf(column, func(n *node) string { return n.label })
}

func sameOf(column []*node, text func(*node) string) string {
	first := text(column[0])
	if slices.ContainsFunc(column, func(n *node) bool { return text(n) != first }) {
		return ""
	}
	return first
}

// othersFit reports whether all children but one are the same in all renderings and recorded, and have words, or there are no others in
// a text.
func (b *branch) othersFit() bool {
	generated, words := 0, b.inText && len(b.columns) == 1
	for i, column := range b.columns {
		if len(b.old.children) != len(b.columns) || !fits(column, b.old.children[i]) {
			return false
		}
		if !sameInAll(column) {
			generated++
		}
		words = words || hasFixedWords(column)
	}
	return generated == 1 && words
}

// aligned returns the versions of each child, in the order of the first one: by their names, or if there are others, as they come. It
// returns nil in place of a field that isn't in all of them, and of all columns if lists have different lengths. reordered says that a
// list comes in another order each time.
func aligned(versions []*node) (columns [][]*node, reordered bool) {
	n := versions[0]
	columns = make([][]*node, len(n.children))
	for i, child := range n.children {
		columns[i] = []*node{child}
	}
	for _, other := range versions[1:] {
		if n.kind == items && len(other.children) != len(n.children) {
			return nil, false
		}
		order := orderOf(n.children, other)
		reordered = reordered || n.kind == items && !slices.IsSorted(order)
		for i, at := range order {
			if at < 0 || columns[i] == nil {
				columns[i] = nil
			} else {
				columns[i] = append(columns[i], other.children[at])
			}
		}
	}
	return columns, reordered
}

// orderOf returns for each child the position of its counterpart in another rendering; -1 for a field that isn't there.
func orderOf(children []*node, other *node) []int {
	out := make([]int, len(children))
	for i, child := range children {
		out[i] = other.childIndex(child.name)
	}
	if other.kind == items && slices.Contains(out, -1) {
		for i := range out {
			out[i] = i
		}
	}
	return out
}

// childrenAt returns the children of all versions with a name; nil if one of them has none.
func childrenAt(versions []*node, name string) []*node {
	var out []*node
	for _, v := range versions {
		child := v.child(name)
		if child == nil {
			return nil
		}
		out = append(out, child)
	}
	return out
}

func mapped[T, U any](list []T, to func(T) U) []U {
	out := make([]U, len(list))
	for i, n := range list {
		out[i] = to(n)
	}
	return out
}

// hasSameIdentities reports whether a recorded item of a list has everything that says whose an item is.
func (n *node) hasSameIdentities(versions []*node, old *node) bool {
	if n.kind != fields || old.kind != fields {
		return n.kind == old.kind
	}
	now, before := identities(n), identities(old)
	for key := range now {
		column := mapped(versions, func(v *node) *node { return identities(v)[key] })
		if slices.Contains(column, nil) || before[key] == nil || !fits(column, before[key]) {
			return false
		}
	}
	return len(now) == len(before)
}

// headersFit reports whether a recorded block begins with the same line, in which something may be generated.
func headersFit(versions []*node, old *node) bool {
	headers, recorded := mapped(versions, (*node).header), old.header()
	if recorded == nil || slices.Contains(headers, nil) {
		return recorded == nil && headers[0] == nil
	}
	if sameInAll(headers) {
		return labelOfHeader(headers[0].text) == labelOfHeader(recorded.text)
	}
	return fits(headers, recorded)
}

// fits reports whether a recorded node has everything that is the same in all versions of a rendered one.
func fits(versions []*node, old *node) bool {
	n := versions[0]
	if sameInAll(versions) {
		return equal(n, old)
	}
	if old == nil || old.kind != n.kind || slices.ContainsFunc(versions, func(v *node) bool { return v.kind != n.kind }) {
		return false
	}
	if n.kind != scalar {
		columns, _ := aligned(versions)
		if columns == nil || len(columns) != len(old.children) {
			return false
		}
		for i, column := range columns {
			counterpart := old.children[i]
			if n.kind == fields {
				counterpart = old.child(n.children[i].name)
			}
			if column == nil || counterpart == nil || !fits(column, counterpart) {
				return false
			}
		}
		return true
	}
	if roots := openAll(versions); roots != nil {
		l := recordedIn(old, n.inner)
		return l != nil && fits(roots, l.root)
	}
	if n.isPEM() {
		return old.isPEM() && pemLabel(n.text) == pemLabel(old.text)
	}
	segments := segmentsOfLine(versions)
	return segments == nil || segments.match(old.text) != nil
}

// hasFixedWords reports whether a word is the same in all versions of a node, so that it can be recognised.
func hasFixedWords(versions []*node) bool {
	n := versions[0]
	switch {
	case sameInAll(versions):
		found := false
		n.each(func(s *node) { found = found || strings.ContainsFunc(s.text, isWord) })
		return found
	case n.kind != scalar:
		columns, _ := aligned(versions)
		return slices.ContainsFunc(columns, func(column []*node) bool { return column != nil && hasFixedWords(column) })
	}
	if roots := openAll(versions); roots != nil {
		return hasFixedWords(roots)
	}
	return n.isPEM() || segmentsOfLine(versions).hasWords()
}
