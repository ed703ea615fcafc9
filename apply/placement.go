package apply

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/decide"
	"deployer/internal/kube"
)

// placeOrphans puts what was decided about orphans into a plan: each at its moment, and there in the order of deletion.
func (p *pruner) placeOrphans(ctx context.Context, plan *Plan, changes []Change) error {
	atEnd := len(plan.Waves)
	const first = -1
	parts := map[int][]Change{} // by wave, what goes before it
	newcomers, admission := sync.OnceValue(func() []newcomer { return p.newcomers(plan) }), &admission{p: p.planning}
	for _, c := range changes {
		at := atEnd
		why := decide.WhyBefore(c.ID.GroupKind())
		if why == "" && admission.isParameter(ctx, c.orphan.Declared) {
			why = "a policy would go on judging by it"
		}
		switch {
		case p.req.Uninstall || c.Action != decide.Delete:
		case why != "":
			at = first
			c.Reason += "; before the other changes: " + why
		default:
			if n := p.inPlaceOf(ctx, c.orphan, newcomers()); n != nil {
				at = n.wave
				c.Reason += fmt.Sprintf("; before %s, which %s", n.t.id, n.why)
				c.orphan.makesRoom = true // it stays until its pods are gone too
				if len(c.writes) > 0 {    // else it is being deleted already
					c.writes[0].propagation = p.propagationOf(c.orphan)
				}
			}
		}
		parts[at] = append(parts[at], c)
	}
	for at, part := range parts {
		ordered, err := p.inDeletionOrder(ctx, part)
		switch {
		case err != nil:
			return err
		case at == first:
			plan.PruneFirst = ordered
		case at == atEnd:
			if plan.Prune, plan.PruneLast, err = p.splitOwnAccess(ctx, ordered); err != nil {
				return err
			}
		default:
			plan.Waves[at].PruneFirst = ordered
		}
	}
	return nil
}

// TakeWhatIsShort returns the deletions of Prune that may end a shortage of an object that is waited for. They come
// now, by Applier.Prune, and not when all is ready; the plan has them in PruneFirst.
func (p *Plan) TakeWhatIsShort(of kube.ID, s decide.Shortage) []Change {
	s.Namespace = of.Namespace
	before := len(p.PruneFirst)
	p.Prune = slices.DeleteFunc(p.Prune, func(c Change) bool {
		isIt := c.Action == decide.Delete && len(c.writes) > 0 && len(c.orphan.order.WaitsForGone) == 0 && s.MayEndWithout(c.orphan.Declared)
		if isIt {
			why := "traffic that it cuts off"
			if s.Message != "" {
				why = "what it had: " + s.Message
			}
			c.Warning = fmt.Sprintf("deleted before %s was ready, which may wait for %s", of, why)
			p.PruneFirst = append(p.PruneFirst, c)
		}
		return isIt
	})
	return p.PruneFirst[before:]
}

// A newcomer is an object of the chart that may need what an orphan holds.
type newcomer struct {
	t     *target
	wave  int
	isNew bool             // it isn't in the cluster yet
	needs []decide.Holding // what it doesn't have yet
	why   string           // it takes the place of an orphan
}

// newcomers are the objects of a plan that may need what orphans hold.
func (p *pruner) newcomers(plan *Plan) []newcomer {
	var out []newcomer
	for i, wave := range plan.Waves {
		for _, c := range wave.Changes {
			if t := p.targetsByID[c.ID]; t != nil && (c.Action == decide.Create || c.Action == decide.Update || c.Action == decide.Recreate) {
				needs := decide.WithoutHoldings(decide.HoldingsOf(t.obj), decide.HoldingsOf(c.Live))
				out = append(out, newcomer{t: t, wave: i, isNew: c.Live == nil, needs: needs})
			}
		}
	}
	return out
}

// inPlaceOf returns the first newcomer that needs what an orphan holds; nil when there is none.
func (p *pruner) inPlaceOf(ctx context.Context, o *orphan, newcomers []newcomer) *newcomer {
	held := decide.HoldingsOf(o.Declared)
	for _, c := range newcomers {
		if c.t.waits.deferral.waitsFor(o.ID) {
			c.why = "isn't admitted beside it"
			return &c
		}
		for _, shared := range decide.SharedHoldings(held, c.needs) {
			if shared.Claim == (kube.ID{}) || p.isExclusive(ctx, shared.Claim) {
				c.why = "needs its " + shared.What
				return &c
			}
		}
		if c.isNew && decide.IsRenamed(o.Declared, c.t.obj, o.source != "" && o.source == c.t.source) {
			c.why = "takes its place, and they must not run side by side"
			return &c
		}
	}
	return nil
}

// isExclusive reports whether only one node or pod can use a volume claim at a time. A claim of which nothing
// is known counts as such, because most are.
func (p *pruner) isExclusive(ctx context.Context, id kube.ID) bool {
	var claim *unstructured.Unstructured
	if t := p.targetsByID[id]; t != nil {
		claim = t.obj
	} else if mapping, err := p.a.cluster.Mapping(ctx, id.GroupKind().WithVersion("v1"), true); err == nil {
		claim, _ = p.exclusive.get(id, func() (*unstructured.Unstructured, error) {
			live, err := p.a.get(ctx, mapping, id)
			if err != nil {
				return nil, nil // such as without the permission
			}
			return live, nil
		})
	}
	if claim == nil {
		return true
	}
	modes, _, _ := unstructured.NestedStringSlice(claim.Object, "spec", "accessModes")
	return !slices.ContainsFunc(modes, func(mode string) bool { return mode == "ReadWriteMany" || mode == "ReadOnlyMany" })
}
