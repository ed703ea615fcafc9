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

// Cycles finds dependencies that can't be ordered: the shortest cycle of the first of those
// that wait for each other, and each object that waits for one with a greater weight.
func Cycles(nodes []Node) []Cycle {
	weight, g := weights(nodes), newDependencyGraph(nodes)
	var out []Cycle
	reported := map[int]bool{}
	for i := range nodes {
		if g.isOrdered[i] || reported[i] {
			continue
		}
		out = append(out, g.shortestCycle(i))
		for j := range nodes {
			reported[j] = reported[j] || !g.isOrdered[j] && g.path(i, j) != nil && g.path(j, i) != nil
		}
	}
	for i, n := range nodes {
		for _, e := range n.Edges {
			if n.Weight != nil && weight[e.To] > *n.Weight && g.path(e.To, i) == nil {
				out = append(out, weightCycle(nodes, weight, i, e))
			}
		}
	}
	return out
}

// A dependencyGraph finds the nodes that wait for themselves.
type dependencyGraph struct {
	nodes     []Node
	isOrdered []bool // those that are in no cycle
}

func newDependencyGraph(nodes []Node) *dependencyGraph {
	g := &dependencyGraph{nodes: nodes, isOrdered: make([]bool, len(nodes))}
	seen := make([]bool, len(nodes))
	var visit func(i int)
	visit = func(i int) {
		if seen[i] {
			return
		}
		seen[i] = true
		for _, e := range nodes[i].Edges {
			visit(e.To)
		}
		g.isOrdered[i] = g.path(i, i) == nil // path skips nodes that are known to be in no cycle
	}
	for i := range nodes {
		visit(i)
	}
	return g
}

// A hop is one edge of a path, with those before it.
type hop struct {
	at   int
	edge Edge
	prev *hop
}

// path returns the shortest way from a node to one that it waits for, through nodes that are in
// cycles; nil when there is none.
func (g *dependencyGraph) path(from, to int) *hop {
	queue, seen := []*hop{{at: from}}, map[int]bool{}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		for _, e := range g.nodes[s.at].Edges {
			next := &hop{at: e.To, edge: e, prev: s}
			switch {
			case e.To == to:
				return next
			case !seen[e.To] && !g.isOrdered[e.To]:
				seen[e.To] = true
				queue = append(queue, next)
			}
		}
	}
	return nil
}

// shortestCycle returns the shortest cycle through a node.
func (g *dependencyGraph) shortestCycle(i int) Cycle {
	var lines []string
	for s := g.path(i, i); s.prev != nil; s = s.prev {
		lines = append(lines, g.nodes[s.prev.at].waitsFor(g.nodes[s.at], s.edge))
	}
	slices.Reverse(lines)
	return Cycle{g.nodes[i].ID, "waits for itself in a cycle:\n" + strings.Join(lines, "\n")}
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
