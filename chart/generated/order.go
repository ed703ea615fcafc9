package generated

import (
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"deployer/internal/lazyregexp"
)

// An order says that the order of a list, or of the keys of a text, is generated. If its
// token is kept, the recorded order is kept.
type order struct {
	path      []any // of the list
	token     *token
	positions []int // of the rendered items, in the recorded order; nil for keys
}

// positionsOf returns the position of each wanted label among labels; false unless both have the
// same labels.
func positionsOf(labels, wanted []string) ([]int, bool) {
	at := map[string][]int{}
	for i, label := range labels {
		at[label] = append(at[label], i)
	}
	var out []int
	for _, label := range wanted {
		if len(at[label]) == 0 {
			return nil, false
		}
		out, at[label] = append(out, at[label][0]), at[label][1:]
	}
	return out, len(labels) == len(wanted)
}

// inOrder returns the items at positions, in the order of the positions.
func inOrder[T any](items []T, positions []int) []T {
	out := make([]T, len(positions))
	for i, at := range positions {
		out[i] = items[at]
	}
	return out
}

// aligned returns the items of other renderings in the order of labels, which are those of the items of the first
// rendering. shuffled says that some were in another order. If there are no labels, or a rendering has others, no items
// are moved.
func aligned[T any](labels []string, others [][]T, labelsOf func([]T) []string) (out [][]T, shuffled bool) {
	out = slices.Clone(others)
	for i, other := range others {
		positions, ok := positionsOf(labelsOf(other), labels)
		if !ok || len(labels) == 0 {
			return others, false
		}
		shuffled = shuffled || !slices.IsSorted(positions)
		out[i] = inOrder(other, positions)
	}
	return out, shuffled
}

// keepOrder adds a list whose order is generated. labels identify its items, and recorded those of the recorded list.
func (w *fieldWalker) keepOrder(path []any, name string, labels, recorded []string) {
	if w.field == "" {
		w.keys = path
	}
	positions, same := positionsOf(labels, recorded)
	w.orders = append(w.orders, order{path, w.orderToken(name, same), positions})
}

// orderToken adds the token of an order.
func (w *fieldWalker) orderToken(name string, isRecorded bool) *token {
	t := w.token(name, versions[string]{}, "it has other items than before, in an order that is generated")
	t.nonText = []any{}
	if isRecorded {
		t.recorded = new(string)
	}
	return t
}

// reordered is a value with its lists in their kept order. The value itself isn't changed.
func reordered(root any, orders []order) any {
	orders = slices.Clone(orders)
	// An inner list is found by the rendered positions of those around it.
	slices.SortStableFunc(orders, func(a, b order) int { return len(b.path) - len(a.path) })
	for _, o := range orders {
		if list, ok := valueAt(root, o.path).([]any); ok && o.token.kept && len(list) == len(o.positions) {
			root = setAt(root, o.path, inOrder(list, o.positions))
		}
	}
	return root
}

// recordedOrder returns the recorded text, if a text differs from it only in an order that is
// kept; otherwise the text and false.
func recordedOrder(text, recorded string, orders []order, decode func(string) (any, error)) (string, bool) {
	if recorded == "" || !slices.ContainsFunc(orders, func(o order) bool { return o.token.kept }) {
		return text, false
	}
	root, err := decode(text)
	recordedRoot, rerr := decode(recorded)
	if err != nil || rerr != nil || !reflect.DeepEqual(reordered(root, orders), recordedRoot) || !slices.Equal(sortedPieces(text), sortedPieces(recorded)) {
		return text, false
	}
	return recorded, true
}

func sortedPieces(text string) []string {
	out := pieces().FindAllString(text, -1)
	slices.Sort(out)
	return out
}

// keysShuffled reports whether the renderings of a text have the same keys in different orders.
func keysShuffled(v versions[string]) bool {
	var others [][]string
	for _, other := range v.rerendered {
		others = append(others, keysIn(other))
	}
	_, shuffled := aligned(keysIn(v.rendered), others, func(keys []string) []string { return keys })
	return shuffled
}

// keysIn lists the keys of a YAML text in their order, each with those above it.
func keysIn(text string) []string {
	var root yaml.Node
	if yaml.Unmarshal([]byte(text), &root) != nil {
		return nil
	}
	var out []string
	var collect func(n *yaml.Node, path string)
	collect = func(n *yaml.Node, path string) {
		for i, child := range n.Content {
			switch {
			case n.Kind != yaml.MappingNode:
				collect(child, path)
			case i%2 == 0:
				out = append(out, path+"\x00"+child.Value)
			default:
				collect(child, path+"\x00"+n.Content[i-1].Value)
			}
		}
	}
	collect(&root, "")
	return out
}

// lineKey matches the key that a line begins with, as in key=value and key: value.
var lineKey = lazyregexp.New(`^\s*([^\s=:]+)\s*[=:]`)

// lineKeys returns a key for each unit of a text, by which a line is found in another order; nil if two lines have the
// same key, or there is a PEM block.
func lineKeys(units []unit) []string {
	var out []string
	seen := map[string]bool{}
	for _, u := range units {
		key := strings.TrimSpace(u.text)
		if m := lineKey().FindStringSubmatch(u.text); m != nil {
			key = m[1]
		}
		if u.pem != "" || u.text != "\n" && seen[key] {
			return nil
		}
		seen[key] = true
		out = append(out, key)
	}
	return out
}

// shuffled is text whose lines are in another order in each rendering.
type shuffled struct {
	lines joined
	order order
}

func (s shuffled) value() any {
	if s.order.token.kept {
		return joined(inOrder(s.lines, s.order.positions)).value()
	}
	return s.lines.value()
}

// keepLineOrder keeps the recorded order of lines.
func (w *fieldWalker) keepLineOrder(name string, lines joined, units []unit, recorded *string) part {
	o := order{}
	same := false
	if recorded != nil {
		o.positions, same = positionsOf(lineKeys(units), lineKeys(unitsOf(*recorded)))
	}
	o.token = w.orderToken(name, same)
	return shuffled{lines, o}
}
