package ordering

import (
	"fmt"
	"slices"
	"strings"

	"deployer/internal/kube"
)

// A Cycle is a list of nodes each of which waits for the next, and the last for
// the first.
type Cycle struct {
	ID   kube.ID // one of them
	Text string
}

// Cycles finds dependencies that can't be ordered: one cycle of each strongly connected
// part, and each object that waits for one with a greater weight.
func Cycles(nodes []Node) []Cycle {
	weight := weights(nodes)
	components := cyclicComponents(nodes)
	var out []Cycle
	reported := map[int]bool{}
	for i := range nodes {
		if component := components[i]; component != 0 && !reported[component] {
			reported[component] = true
			out = append(out, shortestCycle(nodes, i, components))
		}
	}
	for i, n := range nodes {
		for _, e := range n.Edges {
			if n.Weight != nil && weight[e.To] > *n.Weight && (components[i] == 0 || components[i] != components[e.To]) {
				out = append(out, weightCycle(nodes, weight, i, e))
			}
		}
	}
	return out
}

// cyclicComponents numbers the strongly connected parts that have a cycle; 0 for nodes
// in none. (Tarjan, Depth-first search and linear graph algorithms, 1972)
func cyclicComponents(nodes []Node) []int {
	index, low, component := make([]int, len(nodes)), make([]int, len(nodes)), make([]int, len(nodes))
	onStack := make([]bool, len(nodes))
	var stack []int
	next, count := 0, 0
	var visit func(i int)
	visit = func(i int) {
		next++
		index[i], low[i] = next, next
		stack, onStack[i] = append(stack, i), true
		for _, e := range nodes[i].Edges {
			if index[e.To] == 0 {
				visit(e.To)
				low[i] = min(low[i], low[e.To])
			} else if onStack[e.To] {
				low[i] = min(low[i], index[e.To])
			}
		}
		if low[i] != index[i] {
			return
		}
		at := slices.Index(stack, i)
		part := stack[at:]
		stack = stack[:at]
		isCyclic := len(part) > 1 || waitsForItself(nodes[i], i)
		if isCyclic {
			count++
		}
		for _, j := range part {
			onStack[j] = false
			if isCyclic {
				component[j] = count
			}
		}
	}
	for i := range nodes {
		if index[i] == 0 {
			visit(i)
		}
	}
	return component
}

func waitsForItself(n Node, i int) bool {
	return slices.ContainsFunc(n.Edges, func(e Edge) bool { return e.To == i })
}

// shortestCycle returns the shortest cycle through a node.
func shortestCycle(nodes []Node, from int, components []int) Cycle {
	type step struct {
		at   int
		edge Edge
		prev *step
	}
	queue, seen := []*step{{at: from}}, map[int]bool{}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		for _, e := range nodes[s.at].Edges {
			if components[e.To] != components[from] || seen[e.To] {
				continue
			}
			seen[e.To] = true
			next := &step{at: e.To, edge: e, prev: s}
			if e.To != from {
				queue = append(queue, next)
				continue
			}
			var lines []string
			for ; next.prev != nil; next = next.prev {
				lines = append(lines, nodes[next.prev.at].waitsFor(nodes[next.at], next.edge))
			}
			slices.Reverse(lines)
			return Cycle{nodes[from].ID, "waits for itself in a cycle:\n" + strings.Join(lines, "\n")}
		}
	}
	return Cycle{ID: nodes[from].ID, Text: "waits for itself"}
}

func (n Node) waitsFor(other Node, e Edge) string {
	switch {
	case e.Implied:
		return fmt.Sprintf("%s needs %s, %s", n.ID, other.ID, e.Reason)
	case e.State == Ready:
		return fmt.Sprintf("%s waits until %s is ready (%s)", n.ID, other.ID, e.Reason)
	}
	return fmt.Sprintf("%s waits until %s exists (%s)", n.ID, other.ID, e.Reason)
}

// weightCycle describes a node that waits for one of a greater weight, and where that one
// inherits its weight from.
func weightCycle(nodes []Node, weight []int, from int, e Edge) Cycle {
	lines := []string{nodes[from].waitsFor(nodes[e.To], e)}
	at := e.To
	for nodes[at].Weight == nil {
		next := slices.IndexFunc(nodes[at].Edges, func(e Edge) bool { return weight[e.To] == weight[at] })
		if next < 0 || len(lines) > len(nodes) {
			break // it has the weight of those that state none
		}
		lines = append(lines, nodes[at].waitsFor(nodes[nodes[at].Edges[next].To], nodes[at].Edges[next]))
		at = nodes[at].Edges[next].To
	}
	lines = append(lines, fmt.Sprintf("%s (weight %d) waits for all objects of a lower weight, including %s (weight %d)",
		nodes[at].ID, weight[at], nodes[from].ID, *nodes[from].Weight))
	return Cycle{nodes[from].ID, "waits for itself in a cycle:\n" + strings.Join(lines, "\n")}
}
