package generated

import (
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"deployer/internal/lazyregexp"
)

// An order is a list, or the keys of a text, in an order that is generated. While its
// token is kept, it has the recorded one.
type order struct {
	path      []any // of the list
	token     *token
	positions []int // of the rendered items, in the recorded order; nil for keys
}

// positionsOf says where each of the wanted labels stands; false unless there are the same
// ones.
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

// inOrder lists items by their positions.
func inOrder[T any](items []T, positions []int) []T {
	out := make([]T, len(positions))
	for i, at := range positions {
		out[i] = items[at]
	}
	return out
}

// aligned puts the parts of other renderings in the order of the labels, which tell parts apart, and tells
// whether they had another one. Without labels, or where others have other ones, they stay as they are.
func aligned[T any](labels []string, others [][]T, labelsOf func([]T) []string) ([][]T, bool) {
	out := slices.Clone(others)
	shuffled := false
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

// keepOrder keeps the recorded order of the same items, each of which has a label.
func (w *fieldWalker) keepOrder(path []any, name string, labels, recorded []string) {
	if w.field == "" {
		w.keys = path
	}
	positions, same := positionsOf(labels, recorded)
	w.orders = append(w.orders, order{path, w.orderToken(name, same), positions})
}

// orderToken stands for an order.
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

// recordedOrder is the recorded text, if a text has the same parts in another order, and
// the order is kept.
func recordedOrder(text, recorded string, orders []order, decode func(string) (any, error)) (string, bool) {
	if recorded == "" || !slices.ContainsFunc(orders, func(o order) bool { return o.token.kept }) {
		return text, false
	}
	root, err := decode(text)
	was, werr := decode(recorded)
	if err != nil || werr != nil || !reflect.DeepEqual(reordered(root, orders), was) || !slices.Equal(sortedPieces(text), sortedPieces(recorded)) {
		return text, false
	}
	return recorded, true
}

func sortedPieces(text string) []string {
	out := pieces().FindAllString(text, -1)
	slices.Sort(out)
	return out
}

// keysShuffled reports whether a text has the same keys each time, in another order.
func keysShuffled(v versions[string]) bool {
	var others [][]string
	for _, other := range v.rerendered {
		others = append(others, keysIn(other))
	}
	_, shuffled := aligned(keysIn(v.rendered), others, func(keys []string) []string { return keys })
	return shuffled
}

// keysIn lists the keys of a text in YAML as they come.
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

// lineKey is what a line begins with, up to what it says.
var lineKey = lazyregexp.New(`^\s*([^\s=:]+)\s*[=:]`)

// lineKeys are what tells the lines of a text apart; ends of lines are told apart by
// their place. It is nil where two lines have the same key.
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

// shuffled is text whose lines come in another order each time.
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
