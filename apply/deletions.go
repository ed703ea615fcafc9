package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"deployer/internal/annotation"
	"deployer/internal/kube"
)

// backwards puts deletions in order: that of Helm's uninstall, and what waited
// for an object when it was made goes before it. What is wrong with annotations
// keeps nothing from being deleted.
func (p *planning) backwards(ctx context.Context, changes []Change, list []candidate) ([]Change, error) {
	nodes := make([]node, len(list))
	install, uninstall := ranks(installOrder), ranks(uninstallOrder)
	for i, cand := range list {
		nodes[i] = node{id: cand.id, early: rankOf(install, cand.id).wave <= lastEarly}
		if cand.last.obj == nil {
			continue
		}
		stated := annotation.OrderOf(cand.last.obj.GetAnnotations())
		nodes[i].weight = stated.Weight
		for _, r := range stated.Dependencies {
			kinds, err := p.called(ctx, r)
			if err != nil {
				return nil, err
			}
			for j, other := range list {
				if i != j && fits(r, other.id, other.mapping.GVK, kinds, p.space(cand.id)) {
					nodes[i].edges = append(nodes[i].edges, edge{to: j, state: State(r.State)})
				}
			}
		}
	}
	weight := weights(nodes)
	reversed := make([]node, len(list))
	for i := range list {
		weight[i] = -weight[i]
		reversed[i] = node{id: list[i].id, wave: rankOf(uninstall, list[i].id).wave}
	}
	for i, n := range nodes {
		for _, e := range n.edges {
			reversed[e.to].edges = append(reversed[e.to].edges, edge{to: i, state: e.state})
		}
	}
	aggregatedFirst(list, changes, reversed)
	at := levels(reversed, weight)
	var out []Change
	for _, group := range grouped(at, func(i, j int) bool { return inOrder(uninstall, list[i].id, list[j].id) }) {
		for _, i := range group {
			c := changes[i]
			c.at, c.Weight = at[i], nodes[i].weight
			c.waitFor(changes, reversed[i], at)
			out = append(out, c)
		}
	}
	return out, nil
}

// waitFor notes what has to be gone before an object is deleted: what waited
// for it to be ready, and what is of a greater weight.
func (c *Change) waitFor(changes []Change, n node, at []level) {
	seen := map[kube.ID]bool{}
	add := func(id kube.ID) bool {
		if seen[id] {
			return false
		}
		seen[id] = true
		c.behind = append(c.behind, id)
		return true
	}
	for _, e := range n.edges {
		if other := changes[e.to]; e.state == Ready && other.Action == Delete && at[e.to].before(c.at) && add(other.ID) {
			c.After = append(c.After, Need{ID: other.ID, State: Gone})
		}
	}
	if c.at.weight == -earliest {
		return
	}
	for i, other := range changes {
		if other.Action == Delete && at[i].weight < c.at.weight {
			add(other.ID)
		}
	}
}

// delete carries deletions out, one level after the other, and sees to it that
// what was deleted stays so.
func (a *Applier) delete(ctx context.Context, changes []Change, did func(Change)) error {
	gone := departing(changes)
	l := leaving{a: a, asked: map[kube.ID]Change{}, left: map[kube.ID]error{}}
	var errs []error
	for len(changes) > 0 {
		n := 1
		for n < len(changes) && changes[n].at == changes[0].at {
			n++
		}
		free, refused := l.turn(ctx, changes[:n])
		errs = append(errs, refused...)
		for i, err := range a.carryOut(ctx, free, did) {
			if err != nil && i < len(free) {
				l.left[free[i].ID] = err
			}
			errs = append(errs, err)
		}
		changes = changes[n:]
	}
	if ctx.Err() == nil {
		errs = append(errs, a.stayedGone(ctx, gone))
	}
	return errors.Join(errs...)
}

// leaving is what becomes of objects that are being deleted.
type leaving struct {
	a     *Applier
	asked map[kube.ID]Change // whose deletion was asked for
	left  map[kube.ID]error  // how their going ended; nil when they are gone
}

// turn waits until what has to be gone before some objects is, and tells for
// which of them that came true. The others stay.
func (l *leaving) turn(ctx context.Context, group []Change) (free []Change, refused []error) {
	l.await(ctx, group)
	for _, c := range group {
		l.asked[c.ID] = c
		var why error
		for _, id := range c.behind {
			if err := l.left[id]; err != nil {
				why = fmt.Errorf("%s goes first, and is still there: %w", id, err)
				break
			}
		}
		if why == nil {
			free = append(free, c)
			continue
		}
		l.left[c.ID] = why
		refused = append(refused, &ObjectError{ID: c.ID, Source: c.Source, Doing: doing(Delete), Err: why})
	}
	return free, refused
}

func (l *leaving) await(ctx context.Context, group []Change) {
	var ids []kube.ID
	for _, c := range group {
		for _, id := range c.behind {
			if _, known := l.left[id]; !known && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	errs := make([]error, len(ids))
	end := l.a.each(ctx, len(ids), func(i int) error {
		live := l.asked[ids[i]].Live
		mapping, err := l.a.cluster.Mapping(ctx, live.GroupVersionKind(), true)
		if err == nil {
			err = l.a.awaitGone(ctx, mapping, ids[i], string(live.GetUID()))
		}
		errs[i] = err
		return nil
	})
	for i, id := range ids {
		l.left[id] = errors.Join(errs[i], end)
	}
}
