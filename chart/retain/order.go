package retain

import (
	"slices"
)

// aligned returns the versions of each item of lists, in the order of the first one. reordered says that they come in another order
// each time. It returns nil if the lists have different lengths.
func aligned(versions []*node) (columns [][]*node, reordered bool) {
	list := versions[0].children
	columns = make([][]*node, len(list))
	for i, item := range list {
		columns[i] = append(columns[i], item)
	}
	for _, v := range versions[1:] {
		if len(v.children) != len(list) {
			return nil, false
		}
		order := orderOf(list, v.children)
		reordered = reordered || !slices.IsSorted(order)
		for i := range list {
			columns[i] = append(columns[i], v.children[order[i]])
		}
	}
	return columns, reordered
}

// orderOf returns for each item the position of its counterpart in another rendering: of the one with its label, if all
// have different ones, or of the equal one; otherwise its own position.
func orderOf(list, other []*node) []int {
	for _, key := range append(slices.Clone(labelKeys), anyLine, "text") {
		labels, ok := distinctLabels(list, key)
		if !ok {
			continue
		}
		first := map[string]int{}
		for i, item := range slices.Backward(other) {
			first[alignmentLabel(item, key)] = i
		}
		var out []int
		for _, label := range labels {
			if at, found := first[label]; found {
				out = append(out, at)
			}
		}
		if len(out) == len(list) {
			return out
		}
	}
	out := make([]int, len(list))
	for i := range out {
		out[i] = i
	}
	return out
}

// distinctLabels are the labels of items; false unless each has another one.
func distinctLabels(list []*node, key string) (labels []string, ok bool) {
	seen := map[string]bool{"": true}
	for _, item := range list {
		label := alignmentLabel(item, key)
		if seen[label] {
			return nil, false
		}
		seen[label] = true
		labels = append(labels, label)
	}
	return labels, true
}

func alignmentLabel(n *node, key string) string {
	if key == "text" {
		return n.text
	}
	return labelOf(n, key)
}

// sameUpToOrder reports whether a recorded node has the final values of a rendered one, in any order where the order is generated.
func sameUpToOrder(n, old *node) bool {
	if old == nil || n.kind != old.kind || len(n.children) != len(old.children) {
		return false
	}
	switch n.kind {
	case fields:
		for i, key := range n.keys {
			if !sameUpToOrder(n.children[i], old.child(key)) {
				return false
			}
		}
		return true
	case items:
		left := slices.Clone(old.children)
		for i, child := range n.children {
			at := 0
			if n.reorderable {
				at = slices.IndexFunc(left, func(o *node) bool { return sameUpToOrder(child, o) })
			}
			if at < 0 || !sameUpToOrder(n.children[i], left[at]) {
				return false
			}
			left = slices.Delete(left, at, at+1)
		}
		return true
	}
	return n.final() == old.text || n.place == nil && n.segments == nil && n.inner != nil && n.inner.keepsOrder(old.text)
}

// keepsOrder reports whether the recorded text of a layer differs from the final one only in an order that is generated.
func (l *layer) keepsOrder(recorded string) bool {
	old := recordedIn(&node{text: recorded, isData: true}, l)
	if l.format != inBase64 {
		old = recordedIn(&node{text: recorded}, l)
	}
	return old != nil && sameUpToOrder(l.root, old.root) && (l.format == inBase64 || slices.Equal(sortedPieces(l.plainFinal()), sortedPieces(recorded)))
}

func sortedPieces(text string) []string {
	out := pieces().FindAllString(text, -1)
	slices.Sort(out)
	return out
}
