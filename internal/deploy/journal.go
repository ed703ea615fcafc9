package deploy

import (
	"maps"
	"slices"
	"sync"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/apply/definition"
	"deployer/chart"
	"deployer/internal/kube"
	"deployer/release"
)

// A journalWriter keeps the journal in the record of a run up to date.
type journalWriter struct {
	op   *Operation
	lock *release.Lock

	mu        sync.Mutex                   // guards the journal and adoptions while objects are applied side by side
	adoptions map[string]*release.Adoption // of objects that were about to be written, by Key
}

// update records the planned changes and the current state of each object. It
// shows how far a dead run came, and has the fingerprints by which the next release
// recognises unchanged objects. hasEnded says that nothing is carried out any more. A record
// that the run hasn't created keeps its own: a rollback of a failed uninstall needs it to adopt again what was given back.
func (j *journalWriter) update(hasEnded bool) {
	if !verbs[j.op.Verb].creates {
		return
	}
	journal := j.op.Next.Journal
	journal.Objects = make(map[string]release.ObjectState, len(journal.Objects))
	journal.Revisit = nil
	for c := range j.op.Plan.Changes() {
		key := apply.Key(c.ID)
		state, known := j.objectState(c)
		if c.IsDone {
			if fingerprint := c.RecordedFingerprint(); fingerprint.Hash != "" {
				state.UID, state.Fingerprint, known = fingerprint.UID, fingerprint.Hash, true
			}
		}
		if known {
			journal.Objects[key] = state
		}
		if c.RevisitNextRelease {
			journal.Revisit = append(journal.Revisit, key)
		}
	}
	journal.Contributions = contributionsAfter(j.op.contributions, j.op.Plan.CRDs, hasEnded)
	dropLargePriors(journal)
}

// objectState returns the journal's entry of an object that was or will be changed; false
// when it gets none.
func (j *journalWriter) objectState(c apply.Change) (release.ObjectState, bool) {
	var state release.ObjectState
	known := false
	switch {
	case c.IsDone && c.Applied != nil:
		state.UID, known = string(c.Applied.GetUID()), true
	case c.IsDone && (c.Action == decide.Delete || c.Action == decide.GiveBack):
		return state, false // the release doesn't have it any more
	case !c.IsDone:
		known = c.Action != decide.Unchanged && c.Action != decide.Keep
	}
	state.Created = c.IsDone && (c.Action == decide.Create || c.Action == decide.Recreate)
	if p := c.Provenance; p != nil {
		state.Created = state.Created || p.Created
		state.Adopted = j.adoptionOf(p)
	}
	if adoption := j.adoptions[apply.Key(c.ID)]; adoption != nil && !c.IsDone {
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

// contributionsOf returns the contributions of revisions to the definitions in crds/: those that the latest
// revision recorded. For revisions without such a record it takes the CRDs of their charts, without those
// of subcharts, which aren't recorded.
func contributionsOf(records []*release.Record) map[string]definition.Contribution {
	out := map[string]definition.Contribution{}
	var parser chart.Parser
	for _, r := range records {
		if r.Journal != nil && r.Journal.Contributions != nil {
			out = map[string]definition.Contribution{}
			for key, d := range r.Journal.Contributions {
				out[key] = definition.Contribution(d)
			}
			continue
		}
		crds := appliedCRDs(r, &parser)
		if r.Journal == nil && r.Version == 1 && r.Chart != nil {
			// Helm applies them only in the first install. (helm.sh/helm/v3/pkg/action/install.go)
			crds, _, _ = parser.CRDs(r.Chart) // unreadable ones count as added by others
		}
		for _, m := range crds {
			out[apply.Key(kube.IDOf(m.Object))] = definition.ContributionOf(m.Object)
		}
	}
	return out
}

// contributionsAfter returns the contributions to record: the earlier ones, updated by the
// changes that were carried out, or are about to be.
//
// Those of changes that haven't been carried out, and won't be, are as they were.
func contributionsAfter(before map[string]definition.Contribution, changes []apply.Change, hasEnded bool) map[string]release.Contribution {
	out := map[string]release.Contribution{}
	for key, b := range before {
		out[key] = release.Contribution(b)
	}
	for _, c := range changes {
		kept := c.Contribution
		if !hasEnded {
			kept = c.ContributionToRecord()
		}
		if kept != nil {
			out[apply.Key(c.ID)] = release.Contribution(*kept)
		}
	}
	return out
}

// appliedCRDs returns the objects of crds/ that the run of a revision has applied, as far
// as its record has them: Helm records no subcharts, and applies no crds/ in upgrades.
func appliedCRDs(record *release.Record, parser *chart.Parser) []kube.Manifest {
	if record.Journal == nil || record.Chart == nil {
		return nil
	}
	all, _, _ := parser.CRDs(record.Chart) // unreadable ones were skipped
	return slices.DeleteFunc(all, func(m kube.Manifest) bool {
		return record.Journal.Objects[apply.Key(kube.IDOf(m.Object))].UID == ""
	})
}

// definitionsSince returns the definitions that revisions after a target have in crds/.
func definitionsSince(target int, records []*release.Record, parser *chart.Parser) []kube.ID {
	var out []kube.ID
	for _, r := range records {
		if r.Version <= target || r.Chart == nil {
			continue
		}
		crds, _, _ := parser.CRDs(r.Chart) // unreadable ones have not been applied
		for _, m := range crds {
			out = append(out, kube.IDOf(m.Object))
		}
	}
	return out
}
