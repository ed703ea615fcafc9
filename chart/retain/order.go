package retain

import "slices"

// sameUpToOrder reports whether a recorded node has the final values of a rendered one, in any order where the order is generated.
func sameUpToOrder(n, old *node) bool {
	if old == nil || n.kind != old.kind || len(n.children) != len(old.children) {
		return false
	}
	switch n.kind {
	case fields:
		for _, child := range n.children {
			if !sameUpToOrder(child, old.child(child.name)) {
				return false
			}
		}
		return true
	case items:
		left := slices.Clone(old.children)
		for _, child := range n.children {
			at := 0
			if n.reorderable {
				at = slices.IndexFunc(left, func(o *node) bool { return sameUpToOrder(child, o) })
			}
			if at < 0 || !sameUpToOrder(child, left[at]) {
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
