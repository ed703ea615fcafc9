// Package ordering works out in which order the objects of a release are created and deleted: by weight, by
// kind, and by what each of them waits for. It makes no requests.
//
// The caller makes Nodes and Edges from the annotations of the objects. Waves and
// Deletions put them in order, and Cycles tells what can't be ordered.
package ordering

import (
	"cmp"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/internal/annotation"
	"deployer/internal/kube"
)

// State is the state that an object must reach before the next one's turn.
type State string

// The states.
const (
	Ready   State = annotation.StateReady   // as tracking sees it: a Job is complete, a Deployment rolled out
	Present State = annotation.StatePresent // applied; or in the cluster, if it isn't the release's
	Gone    State = "gone"                  // deleted, where objects are deleted in turn
)

// A Dependency is an object that another one waits for.
type Dependency struct {
	ID      kube.ID
	State   State
	Outside bool                    // not of the release: somebody else creates it, maybe later
	GVK     schema.GroupVersionKind // of what is outside; zero for objects of the release
}

// A Node is one object in the graph of what waits for what.
type Node struct {
	ID      kube.ID
	Weight  *int         // as the object states it; nil when it states none
	Edges   []Edge       // to the objects of the release that have to come first
	Outside []Dependency // objects outside of the release that have to come first
	// ComesFirst says that it comes before all weights, after namespaces and CRDs.
	ComesFirst bool
}

// An Edge leads to an object that has to come first.
type Edge struct {
	To      int // index of its node
	State   State
	Reason  string // the annotation, or what one object is to the other
	Implied bool   // no annotation asks for it, and none can change it
}

// Dependencies are what a node waits for besides its namespace and its kind.
func Dependencies(nodes []Node, i int) []Dependency {
	out := slices.Clone(nodes[i].Outside)
	for _, e := range nodes[i].Edges {
		if d := (Dependency{ID: nodes[e.To].ID, State: e.State}); (!e.Implied || e.State == Ready) && !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	return out
}

// A level says when an object's turn comes: by weight, then by the wave of its kind, then
// after the objects of that wave that it waits for. Among these, objects that wait for
// readiness come last, so that they don't delay the others.
type level struct{ weight, wave, depth, awaitsReady int }

func (l level) compare(m level) int {
	return cmp.Or(cmp.Compare(l.weight, m.weight), cmp.Compare(l.wave, m.wave), cmp.Compare(l.depth, m.depth),
		cmp.Compare(l.awaitsReady, m.awaitsReady))
}

// earliest is the weight of what comes before all stated weights.
const earliest = math.MinInt32

// weights returns each node's weight: the stated one, or the greatest weight that it
// waits for, at least 0.
func weights(nodes []Node) []int {
	out, visited := make([]int, len(nodes)), make([]bool, len(nodes))
	var visit func(i int) int
	visit = func(i int) int {
		if visited[i] {
			return out[i] // in a cycle, which is reported by itself, it is not known yet
		}
		visited[i] = true
		n := nodes[i]
		switch {
		case n.ComesFirst:
			out[i] = earliest
			return out[i]
		case n.Weight != nil:
			out[i] = *n.Weight
		case InstallOrder.rank(n.ID).wave <= lastWaveBeforeWeights:
			out[i] = earliest
		}
		for _, e := range n.Edges {
			if w := visit(e.To); n.Weight == nil {
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

// levels returns each node's level. A node never comes before one that it waits for: if
// the wave of its kind is earlier, it follows that node instead. For cycles the order is
// arbitrary.
func levels(nodes []Node, weight []int, kinds KindOrder) []level {
	out, seen := make([]level, len(nodes)), make([]bool, len(nodes))
	var visit func(i int) level
	visit = func(i int) level {
		if seen[i] {
			return out[i]
		}
		seen[i] = true
		at, waits := level{weight: weight[i], wave: kinds.rank(nodes[i].ID).wave}, len(nodes[i].Outside) > 0
		for _, e := range nodes[i].Edges {
			l := visit(e.To)
			l.awaitsReady = 0
			if l.compare(at) >= 0 {
				at = level{weight: l.weight, wave: l.wave, depth: l.depth + 1}
			}
			waits = waits || e.State == Ready
		}
		if waits {
			at.awaitsReady = 1
		}
		out[i] = at
		return at
	}
	for i := range nodes {
		visit(i)
	}
	return out
}

// groups gives the indices of the nodes level by level, and in each by kind and name.
func groups(nodes []Node, at []level, kinds KindOrder) [][]int {
	all := make([]int, len(at))
	for i := range all {
		all[i] = i
	}
	slices.SortStableFunc(all, func(i, j int) int {
		if c := at[i].compare(at[j]); c != 0 {
			return c
		}
		return kinds.compare(nodes[i].ID, nodes[j].ID)
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
