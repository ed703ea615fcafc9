package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"deployer/apply"
	"deployer/release"
)

// provenanceOf is what a record says of where its objects came from; nil when it
// is another tool's. What a record of before has no words for is left out.
func provenanceOf(r *release.Record) map[string]apply.Provenance {
	if r.Journal == nil {
		return nil
	}
	out := map[string]apply.Provenance{}
	for key, m := range r.Journal.Objects {
		p := apply.Provenance{UID: m.UID, Created: m.Created}
		if m.Adopted != nil {
			p.UID = m.Adopted.UID
			p.Adopted = &apply.Adoption{Revision: m.Adopted.Revision, From: m.Adopted.From, Final: m.Adopted.Final}
			if err := json.Unmarshal(m.Adopted.Prior, &p.Adopted.Prior); err != nil && len(m.Adopted.Prior) > 0 {
				p.Adopted.Prior = apply.Prior{Cut: true} // of a newer program: given back as far as it can be
			}
		}
		if p.Created || p.Adopted != nil {
			out[key] = p
		}
	}
	return out
}

// journalEntry is what the journal says of an object that was dealt with, or will be;
// false when it says nothing.
func (r *run) journalEntry(c apply.Change, carriedOut bool) (release.ObjectState, bool) {
	var m release.ObjectState
	known := false
	switch {
	case carriedOut && c.Result != nil:
		m.UID, known = string(c.Result.GetUID()), true
	case carriedOut && (c.Action == apply.Delete || c.Action == apply.GiveBack):
		return m, false // it is the release's no more
	case !carriedOut:
		known = c.Action != apply.None && c.Action != apply.Keep
	}
	m.Created = carriedOut && (c.Action == apply.Create || c.Action == apply.Recreate)
	if from := c.Provenance; from != nil {
		m.Created = m.Created || from.Created
		m.Adopted = r.adoptionOf(from)
	}
	if late := r.adoptions[apply.Key(c.ID)]; late != nil && !carriedOut {
		m.Adopted = late // it has turned out to be somebody else's, and may have been written
	}
	return m, known || m.Adopted != nil || m.Created
}

func (r *run) adoptionOf(from *apply.Provenance) *release.Adoption {
	if from.Adopted == nil {
		return nil
	}
	prior, err := json.Marshal(from.Adopted.Prior)
	if err != nil {
		prior = []byte(`{"cut":true}`) // no error is known: it consists of strings and of JSON
	}
	out := &release.Adoption{UID: from.UID, Revision: from.Adopted.Revision, From: from.Adopted.From, Final: from.Adopted.Final, Prior: prior}
	if out.Revision == 0 {
		out.Revision = r.op.Next.Version
	}
	return out
}

// maxPriorBytes bounds what a journal remembers of the former state of all objects
// together, in bytes of JSON.
const maxPriorBytes = 1 << 20

// dropLargePriors forgets the former values of the objects that are too many.
func dropLargePriors(journal *release.Journal) {
	left := maxPriorBytes
	for _, key := range slices.Sorted(maps.Keys(journal.Objects)) {
		a := journal.Objects[key].Adopted
		if a == nil {
			continue
		}
		if left -= len(a.Prior); left < 0 {
			a.Prior = shortened(a.Prior)
		}
	}
}

// shortened is the former state of an object without its fields.
func shortened(prior json.RawMessage) json.RawMessage {
	var was apply.Prior
	if err := json.Unmarshal(prior, &was); err != nil {
		return json.RawMessage(`{"cut":true}`)
	}
	short, err := json.Marshal(apply.Prior{Stamps: was.Stamps, Cut: true})
	if err != nil {
		return json.RawMessage(`{"cut":true}`)
	}
	return short
}

// recordAdoption records what an object is before the run writes it for the first
// time, unless the record says so already. An object may turn out to be somebody
// else's only when its turn has come.
func (r *run) recordAdoption(ctx context.Context, c apply.Change) error {
	if !r.op.hasPendingRecord() || r.op.Verb == Uninstall {
		return nil
	}
	r.journal.Lock()
	defer r.journal.Unlock()
	objects, key := r.op.Next.Journal.Objects, apply.Key(c.ID)
	adoption := r.adoptionOf(c.Provenance)
	if was := objects[key].Adopted; was != nil && was.UID == adoption.UID && (bytes.Equal(was.Prior, adoption.Prior) || bytes.Equal(was.Prior, shortened(adoption.Prior))) {
		return nil
	}
	if r.adoptions == nil {
		r.adoptions = map[string]*release.Adoption{}
	}
	r.adoptions[key] = adoption
	mark := objects[key]
	mark.Adopted = adoption
	objects[key] = mark
	dropLargePriors(r.op.Next.Journal)
	return r.lock.Save(ctx, r.op.Next)
}

// confirmAdoptions makes what the revision has adopted the release's for good:
// it has succeeded. What the objects were before is forgotten.
func (r *run) confirmAdoptions() {
	for _, wave := range r.op.Plan.Waves {
		for _, c := range wave.Changes {
			mark := r.op.Next.Journal.Objects[apply.Key(c.ID)]
			if mark.Adopted != nil && !mark.Adopted.Final {
				mark.Adopted.Final = true
				mark.Adopted.Prior = stampsOf(mark.Adopted.Prior)
			}
		}
	}
}

// stampsOf is the former state of an object without all that might be restored.
func stampsOf(prior json.RawMessage) json.RawMessage {
	var was apply.Prior
	if err := json.Unmarshal(prior, &was); err != nil || len(was.Stamps) == 0 {
		return nil
	}
	short, err := json.Marshal(apply.Prior{Stamps: was.Stamps})
	if err != nil {
		return nil
	}
	return short
}
