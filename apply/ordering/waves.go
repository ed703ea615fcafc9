package ordering

import (
	"slices"

	"deployer/internal/kube"
)

// A Wave is a list of objects that need no order among themselves.
type Wave struct {
	Nodes []int
	// Await lists the objects that must be ready or present before the wave begins.
	// Objects that only have to be applied aren't in it, because earlier waves do that.
	// No object is listed twice, not even in different waves.
	Await []Dependency
}

// Waves puts the nodes in the order in which they are created. changes tells whether a
// node has a change; an unchanged one only waits for what runs to its end and may change it.
func Waves(nodes []Node, changes func(i int) bool) []Wave {
	at := levels(nodes, weights(nodes), InstallOrder)
	var out []Wave
	awaited, runs := map[Dependency]bool{}, map[kube.ID]bool{}
	for i, n := range nodes {
		if kube.RunsToEnd(n.ID.GroupKind()) && changes(i) {
			runs[n.ID] = true
		}
	}
	var earlier []int
	for _, group := range groups(nodes, at, InstallOrder) {
		wave := Wave{Nodes: group}
		needed := map[Dependency]bool{}
		for _, d := range awaits(nodes, at, slices.DeleteFunc(slices.Clone(group), func(i int) bool { return !changes(i) }), earlier) {
			needed[d] = true
		}
		for _, d := range awaits(nodes, at, group, earlier) {
			if !awaited[d] && (needed[d] || runs[d.ID]) {
				awaited[d] = true
				wave.Await = append(wave.Await, d)
			}
		}
		out, earlier = append(out, wave), append(earlier, group...)
	}
	return out
}

// awaits lists what the nodes of one level wait for: their dependencies and all nodes of
// a lower weight.
func awaits(nodes []Node, at []level, group, earlier []int) []Dependency {
	var out []Dependency
	for _, i := range group {
		for _, d := range Dependencies(nodes, i) {
			if d.State == Ready || d.Outside {
				out = append(out, d)
			}
		}
	}
	if len(group) == 0 {
		return nil
	}
	for _, i := range earlier {
		if at[i].weight != earliest && at[i].weight < at[group[0]].weight {
			out = append(out, Dependency{ID: nodes[i].ID, State: Ready})
		}
	}
	return out
}

// A Deletion says when one object is deleted.
type Deletion struct {
	Node int
	Turn int // those of one turn need no order among themselves
	// Dependencies are the objects that waited for this one to be ready: they must be
	// gone before it is deleted.
	Dependencies []Dependency
	// WaitsForGone are all objects that must be gone before: the Dependencies and those with a
	// greater weight.
	WaitsForGone []kube.ID
}

// A Precedence says that one node is deleted before another one.
type Precedence struct{ First, Then int }

// Deletions puts the nodes in the order in which they are deleted: Helm's uninstall
// order, but objects that waited for another one are deleted before it. deleted tells
// which nodes are deleted; nothing waits for the others to be gone.
func Deletions(nodes []Node, more []Precedence, deleted func(i int) bool) []Deletion {
	weight := weights(nodes)
	reversed := make([]Node, len(nodes))
	for i := range nodes {
		weight[i] = -weight[i]
		reversed[i] = Node{ID: nodes[i].ID}
	}
	for i, n := range nodes {
		for _, e := range n.Edges {
			reversed[e.To].Edges = append(reversed[e.To].Edges, Edge{To: i, State: e.State})
		}
	}
	for _, p := range more {
		reversed[p.Then].Edges = append(reversed[p.Then].Edges, Edge{To: p.First, State: Present})
	}
	at := levels(reversed, weight, UninstallOrder)
	var out []Deletion
	for turn, group := range groups(reversed, at, UninstallOrder) {
		for _, i := range group {
			d := Deletion{Node: i, Turn: turn}
			d.wait(reversed, at, deleted)
			out = append(out, d)
		}
	}
	return out
}

// wait computes what must be gone before the deletion.
func (d *Deletion) wait(reversed []Node, at []level, deleted func(i int) bool) {
	seen, turn := map[kube.ID]bool{}, at[d.Node]
	add := func(id kube.ID) bool {
		if seen[id] {
			return false
		}
		seen[id] = true
		d.WaitsForGone = append(d.WaitsForGone, id)
		return true
	}
	for _, e := range reversed[d.Node].Edges {
		if other := reversed[e.To].ID; e.State == Ready && deleted(e.To) && at[e.To].compare(turn) < 0 && add(other) {
			d.Dependencies = append(d.Dependencies, Dependency{ID: other, State: Gone})
		}
	}
	if turn.weight == -earliest {
		return
	}
	for i := range reversed {
		if at[i].weight < turn.weight && deleted(i) {
			add(reversed[i].ID)
		}
	}
}
