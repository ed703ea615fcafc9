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
		now, carriedOut := r.applied[c.ID]
		switch {
		case carriedOut:
			c = now
			done = append(done, now)
			if c.Result != nil {
				journal.Objects[apply.Key(c.ID)] = release.Mark{UID: string(c.Result.GetUID()), Created: c.Action == apply.Create}
			}
		case c.Action != apply.None && c.Action != apply.Keep:
			journal.Objects[apply.Key(c.ID)] = release.Mark{}
		}
		if c.Again {
			journal.Leftover = append(journal.Leftover, apply.Key(c.ID))
		}
	}
	journal.Definitions = definitions(r.op.brought, r.op.Plan.CRDs)
	for key, mark := range r.applier.Marks(done) {
		journal.Objects[key] = release.Mark{UID: mark.UID, Print: mark.Print, Created: journal.Objects[key].Created}
	}
}
