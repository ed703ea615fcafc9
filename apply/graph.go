package apply

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"deployer/internal/kube"
)

// A node is one object in the graph of what waits for what.
type node struct {
	id     kube.ID
	weight *int // as stated
	early  bool // Namespaces, kinds and the like: before all weights, unless they say otherwise
	wave   int  // of its kind
	apart  bool // waits for an object outside of the release
	edges  []edge
}

// An edge leads to an object that has to come first.
type edge struct {
	to    int
	state State
	why   string // the annotation, or what one is to the other
	hard  bool   // nobody has asked for it: there is no other way
}

// A level is when an object's turn comes: by weight, then by the wave of its
// kind, then after the objects of that wave that it waits for. What has to see
// something ready first holds up nothing that needs not.
type level struct{ weight, wave, depth, patient int }

func (l level) before(m level) bool {
	return cmp.Or(cmp.Compare(l.weight, m.weight), cmp.Compare(l.wave, m.wave), cmp.Compare(l.depth, m.depth),
		cmp.Compare(l.patient, m.patient)) < 0
}

// earliest is the weight of what comes before all stated ones.
const earliest = math.MinInt32

// weights gives each node's weight: the one it states, or the greatest of what
// it waits for, at least 0.
func weights(nodes []node) []int {
	out, state := make([]int, len(nodes)), make([]int, len(nodes))
	var visit func(i int) int
	visit = func(i int) int {
		if state[i] != 0 {
			return out[i] // in a cycle, which is reported by itself, it is not known yet
		}
		state[i] = 1
		n := nodes[i]
		if out[i] = 0; n.early {
			out[i] = earliest
		}
		if n.weight != nil {
			out[i] = *n.weight
		}
		for _, e := range n.edges {
			if w := visit(e.to); n.weight == nil {
				out[i] = max(out[i], w)
			}
		}
		return out[i]
	}
	for i := range nodes {
		visit(i)
	}
	return out
}

// levels gives each node's level. A node is never before what it waits for: if
// its kind would be, it leaves the wave of its kind and follows that. It is
// still total for cycles, where it gives any order.
func levels(nodes []node, weight []int) []level {
	out, seen := make([]level, len(nodes)), make([]bool, len(nodes))
	var visit func(i int) level
	visit = func(i int) level {
		if seen[i] {
			return out[i]
		}
		seen[i] = true
		at, patient := level{weight: weight[i], wave: nodes[i].wave}, nodes[i].apart
		for _, e := range nodes[i].edges {
			l := visit(e.to)
			l.patient = 0
			if !l.before(at) {
				at = level{weight: l.weight, wave: l.wave, depth: l.depth + 1}
			}
			patient = patient || e.state == Ready
		}
		if patient {
			at.patient = 1
		}
		out[i] = at
		return at
	}
	for i := range nodes {
		visit(i)
	}
	return out
}

// A cycle is a list of nodes each of which waits for the next, and the last for
// the first.
type cycle struct {
	id   kube.ID // one of them
	text string
}

// cycles finds what can't be put in order: one cycle of each knot of edges, and
// each object that waits for one of a greater weight than its own.
func cycles(nodes []node, weight []int) []cycle {
	knots := knotsOf(nodes)
	var out []cycle
	told := map[int]bool{}
	for i := range nodes {
		if knot := knots[i]; knot != 0 && !told[knot] {
			told[knot] = true
			out = append(out, circle(nodes, i, knots))
		}
	}
	for i, n := range nodes {
		for _, e := range n.edges {
			if n.weight != nil && weight[e.to] > *n.weight && (knots[i] == 0 || knots[i] != knots[e.to]) {
				out = append(out, heavier(nodes, weight, i, e))
			}
		}
	}
	return out
}

// knotsOf numbers the strongly connected parts that have a cycle; 0 for nodes
// in none. (Tarjan, Depth-first search and linear graph algorithms, 1972)
func knotsOf(nodes []node) []int {
	index, low, knot := make([]int, len(nodes)), make([]int, len(nodes)), make([]int, len(nodes))
	onStack := make([]bool, len(nodes))
	var stack []int
	next, knots := 0, 0
	var visit func(i int)
	visit = func(i int) {
		next++
		index[i], low[i] = next, next
		stack, onStack[i] = append(stack, i), true
		for _, e := range nodes[i].edges {
			if index[e.to] == 0 {
				visit(e.to)
				low[i] = min(low[i], low[e.to])
			} else if onStack[e.to] {
				low[i] = min(low[i], index[e.to])
			}
		}
		if low[i] != index[i] {
			return
		}
		at := slices.Index(stack, i)
		part := stack[at:]
		stack = stack[:at]
		if len(part) > 1 || waitsForItself(nodes[i], i) {
			knots++
		}
		for _, j := range part {
			onStack[j] = false
			if len(part) > 1 || waitsForItself(nodes[j], j) {
				knot[j] = knots
			}
		}
	}
	for i := range nodes {
		if index[i] == 0 {
			visit(i)
		}
	}
	return knot
}

func waitsForItself(n node, i int) bool {
	return slices.ContainsFunc(n.edges, func(e edge) bool { return e.to == i })
}

// circle is the shortest way from a node back to itself.
func circle(nodes []node, from int, knots []int) cycle {
	type step struct {
		at   int
		edge edge
		prev *step
	}
	queue, seen := []*step{{at: from}}, map[int]bool{}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		for _, e := range nodes[s.at].edges {
			if knots[e.to] != knots[from] || seen[e.to] {
				continue
			}
			seen[e.to] = true
			next := &step{at: e.to, edge: e, prev: s}
			if e.to != from {
				queue = append(queue, next)
				continue
			}
			var lines []string
			for ; next.prev != nil; next = next.prev {
				lines = append(lines, nodes[next.prev.at].waitsFor(nodes[next.at], next.edge))
			}
			slices.Reverse(lines)
			return cycle{nodes[from].id, "waits for itself in a circle:\n" + strings.Join(lines, "\n")}
		}
	}
	return cycle{id: nodes[from].id, text: "waits for itself"}
}

func (n node) waitsFor(other node, e edge) string {
	switch {
	case e.hard:
		return fmt.Sprintf("%s needs %s, %s", n.id, other.id, e.why)
	case e.state == Ready:
		return fmt.Sprintf("%s waits until %s is ready (%s)", n.id, other.id, e.why)
	}
	return fmt.Sprintf("%s waits until %s is there (%s)", n.id, other.id, e.why)
}

// heavier tells of a node that waits for one of a greater weight, and where that
// one has it from.
func heavier(nodes []node, weight []int, from int, e edge) cycle {
	lines := []string{nodes[from].waitsFor(nodes[e.to], e)}
	at := e.to
	for nodes[at].weight == nil {
		next := slices.IndexFunc(nodes[at].edges, func(e edge) bool { return weight[e.to] == weight[at] })
		if next < 0 || len(lines) > len(nodes) {
			break // it has the weight of those that state none
		}
		lines = append(lines, nodes[at].waitsFor(nodes[nodes[at].edges[next].to], nodes[at].edges[next]))
		at = nodes[at].edges[next].to
	}
	lines = append(lines, fmt.Sprintf("%s, of weight %d, waits until all of a lower weight are ready, %s of weight %d among them",
		nodes[at].id, weight[at], nodes[from].id, *nodes[from].weight))
	return cycle{nodes[from].id, "waits for itself in a circle:\n" + strings.Join(lines, "\n")}
}

// grouped gives the nodes level by level, and in each by order.
func grouped(at []level, less func(i, j int) bool) [][]int {
	all := make([]int, len(at))
	for i := range all {
		all[i] = i
	}
	sort.SliceStable(all, func(a, b int) bool {
		i, j := all[a], all[b]
		if at[i] != at[j] {
			return at[i].before(at[j])
		}
		return less(i, j)
	})
	var out [][]int
	for n, i := range all {
		if n == 0 || at[all[n-1]] != at[i] {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], i)
	}
	return out
}
