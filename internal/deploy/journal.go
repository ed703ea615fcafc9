package deploy

import (
	"deployer/apply"
	"deployer/release"
)

// remember puts into the journal what was planned and how each object is by now:
// whoever finds the record of a dead run sees how far it came, and the next
// release recognises untouched objects without reading them. An uninstall leaves
// nothing to recognise.
func (r *run) remember() {
	if r.op.Verb == Uninstall {
		return
	}
	journal := r.op.Next.Journal
	journal.Objects = map[string]release.Mark{}
	journal.Leftover = nil
	var done []apply.Change
	for c := range r.op.Plan.Changes() {
		key := apply.Key(c.ID)
		now, carriedOut := r.applied[c.ID]
		if carriedOut {
			c = now
			done = append(done, now)
		}
		mark, known := r.markOf(c, carriedOut)
		if known {
			journal.Objects[key] = mark
		}
		if c.Again {
			journal.Leftover = append(journal.Leftover, key)
		}
	}
	journal.Definitions = definitions(r.op.brought, r.op.Plan.CRDs)
	for key, mark := range r.applier.Marks(done) {
		was := journal.Objects[key]
		was.UID, was.Print = mark.UID, mark.Print
		journal.Objects[key] = was
	}
	bound(journal)
}
