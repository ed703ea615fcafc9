package deploy

import (
	"maps"
	"slices"

	"deployer/apply"
	"deployer/release"
)

// updateJournal records the planned changes and the current state of each object. It
// shows how far a dead run came, and has the fingerprints by which the next release
// recognises unchanged objects. An uninstall needs no journal.
func (r *run) updateJournal() {
	if r.op.Verb == Uninstall {
		return
	}
	journal := r.op.Next.Journal
	journal.Objects = map[string]release.ObjectState{}
	journal.Revisit = nil
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
			journal.Revisit = append(journal.Revisit, key)
		}
	}
	journal.Contributions = contributionsAfter(r.op.contributions, r.op.Plan.CRDs)
	for key, fingerprint := range r.applier.Fingerprints(done) {
		state := journal.Objects[key]
		state.UID, state.Fingerprint = fingerprint.UID, fingerprint.Hash
		journal.Objects[key] = state
	}
	dropLargePriors(journal)
}

// objectState returns the journal's entry of an object that was or will be changed; false
// when it gets none.
func (r *run) objectState(c apply.Change, carriedOut bool) (release.ObjectState, bool) {
	var state release.ObjectState
	known := false
	switch {
	case carriedOut && c.Applied != nil:
		state.UID, known = string(c.Applied.GetUID()), true
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
		state.Adopted = adoption // the run has found it to be another owner's, and may have written it
	}
	return state, known || state.Adopted != nil || state.Created
}

// maxPriorBytes limits the recorded former states of all objects together, in bytes of
// JSON.
const maxPriorBytes = 1 << 20

// dropLargePriors drops the former fields of the objects that exceed maxPriorBytes.
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
