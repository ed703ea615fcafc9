package deploy

import (
	"deployer/apply"
	"deployer/release"
)

// updateJournal puts into the journal what was planned and how each object is by now:
// whoever finds the record of a dead run sees how far it came, and the next
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
		mark, known := r.journalEntry(c, carriedOut)
		if known {
			journal.Objects[key] = mark
		}
		if c.Again {
			journal.Orphans = append(journal.Orphans, key)
		}
	}
	journal.Definitions = definitionsAfter(r.op.definitions, r.op.Plan.CRDs)
	for key, mark := range r.applier.Marks(done) {
		was := journal.Objects[key]
		was.UID, was.Fingerprint = mark.UID, mark.Print
		journal.Objects[key] = was
	}
	dropLargePriors(journal)
}
