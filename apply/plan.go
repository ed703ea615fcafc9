package apply

import (
	"iter"
	"slices"

	"deployer/internal/kube"
)

// A Plan is a decision that hasn't been carried out. To carry it out, pass CRDs and then
// the changes of each wave to Run, and what is pruned to Applier.Prune: PruneFirst before the first wave,
// that of a wave before the wave, and Prune at the end. Last and PruneLast come when the run is recorded. Before each wave the
// caller waits until the objects in its Await are ready. Between them it may run hooks and wait
// for objects.
type Plan struct {
	CRDs       []Change // of the crds/ directory
	PruneFirst []Change // what would act on the changes, see decide.Before: Delete, in the order of deletion
	Waves      []Wave   // all main objects, unchanged ones too
	Prune      []Change // the other orphans: Delete, Keep or GiveBack, with the reason, in the order of deletion
	PruneLast  []Change // the permissions by which the run acts: Delete, when all else is done and recorded
	Hooks      []Change // Create, with the server's verdict; Run doesn't take these

	Warnings []Warning
}

// Changes are all changes but those of hooks, in the order they are made.
func (p *Plan) Changes() iter.Seq[Change] {
	return func(yield func(Change) bool) {
		for _, list := range p.lists() {
			for _, c := range list {
				if !yield(c) {
					return
				}
			}
		}
	}
}

// Declares reports whether an object is part of the release after the plan: in the chart, in
// crds/, or the object of a hook that runs. Orphans aren't.
func (p *Plan) Declares(id kube.ID) bool {
	isIt := func(c Change) bool { return c.ID == id }
	return slices.ContainsFunc(p.CRDs, isIt) || slices.ContainsFunc(p.Hooks, isIt) ||
		slices.ContainsFunc(p.Waves, func(w Wave) bool { return slices.ContainsFunc(w.Changes, isIt) })
}

// Last are the changes of the last wave if that comes when all else is done and recorded; none if there is no such wave.
func (p *Plan) Last() []Change {
	if n := len(p.Waves); n > 0 && p.Waves[n-1].Last {
		return p.Waves[n-1].Changes
	}
	return nil
}

// lists returns the lists of changes in the order in which they are made.
func (p *Plan) lists() [][]Change {
	lists := [][]Change{p.CRDs, p.PruneFirst}
	for _, wave := range p.Waves {
		lists = append(lists, wave.PruneFirst, wave.Changes)
	}
	return append(lists, p.Prune, p.PruneLast)
}

// Orphans are the changes of objects that the chart no longer has, in the order they are made.
func (p *Plan) Orphans() [][]Change {
	lists := [][]Change{p.PruneFirst}
	for _, wave := range p.Waves {
		lists = append(lists, wave.PruneFirst)
	}
	return append(lists, p.Prune, p.PruneLast)
}
