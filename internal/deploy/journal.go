package deploy

import (
	"maps"
	"slices"

	"deployer/apply"
	"deployer/release"
)

// updateJournal writes into the journal what was planned and how each object is by
// now. Whoever finds the record of a dead run sees how far it came, and the next
// release recognises untouched objects without reading them. An uninstall leaves
// nothing to recognise.
func (r *run) updateJournal() {
	if r.op.Verb == Uninstall {
		return
	}
	journal := r.op.Next.Journal
	journal.Objects = map[string]release.ObjectState{}
	journal.Orphans = nil
	var done []apply.Change
	for c := range r.op.Plan.Changes() {
		key := apply.Key(c.ID)
		now, carriedOut := r.applied[c.ID]
		if carriedOut {
			c = now
			done = append(done, now)
		}
		if state, known := r.objectState(c, carriedOut); known {
			journal.Objects[key] = state
		}
		if c.RevisitNextRelease {
			journal.Orphans = append(journal.Orphans, key)
		}
	}
	journal.Definitions = definitionsAfter(r.op.contributions, r.op.Plan.CRDs)
	for key, fingerprint := range r.applier.Fingerprints(done) {
		state := journal.Objects[key]
		state.UID, state.Fingerprint = fingerprint.UID, fingerprint.Print
		journal.Objects[key] = state
	}
	dropLargePriors(journal)
}

// objectState is what the journal says of an object that was changed, or will be;
// false when it says nothing.
func (r *run) objectState(c apply.Change, carriedOut bool) (release.ObjectState, bool) {
	var state release.ObjectState
	known := false
	switch {
	case carriedOut && c.Result != nil:
		state.UID, known = string(c.Result.GetUID()), true
	case carriedOut && (c.Action == apply.Delete || c.Action == apply.GiveBack):
		return state, false // the release doesn't have it any more
	case !carriedOut:
		known = c.Action != apply.Unchanged && c.Action != apply.Keep
	}
	state.Created = carriedOut && (c.Action == apply.Create || c.Action == apply.Recreate)
	if p := c.Provenance; p != nil {
		state.Created = state.Created || p.Created
		state.Adopted = r.adoptionOf(p)
	}
	if adoption := r.adoptions[apply.Key(c.ID)]; adoption != nil && !carriedOut {
		state.Adopted = adoption // it has turned out to be somebody else's, and may have been written
	}
	return state, known || state.Adopted != nil || state.Created
}

// maxPriorBytes bounds what a journal remembers of the former state of all objects
// together, in bytes of JSON.
const maxPriorBytes = 1 << 20

// dropLargePriors forgets the former fields of the objects that are too many.
func dropLargePriors(journal *release.Journal) {
	left := maxPriorBytes
	for _, key := range slices.Sorted(maps.Keys(journal.Objects)) {
		a := journal.Objects[key].Adopted
		if a == nil {
			continue
		}
		if left -= len(a.Prior); left < 0 {
			a.Prior = withoutFields(a.Prior)
		}
	}
}
