package deploy

import (
	"bytes"
	"context"
	"encoding/json"

	"deployer/apply"
	"deployer/apply/provenance"
	"deployer/release"
)

// provenanceOf returns the recorded provenance of a record's objects; nil for a record of
// another tool. Objects without recorded provenance are left out.
func provenanceOf(r *release.Record) map[string]provenance.Provenance {
	if r.Journal == nil {
		return nil
	}
	out := map[string]provenance.Provenance{}
	for key, state := range r.Journal.Objects {
		p := provenance.Provenance{UID: state.UID, Created: state.Created}
		if a := state.Adopted; a != nil {
			p.UID = a.UID
			p.Adopted = &provenance.Adoption{Revision: a.Revision, From: a.From, Final: a.Final, Prior: decodePrior(a.Prior)}
		}
		if p.Created || p.Adopted != nil {
			out[key] = p
		}
	}
	return out
}

// decodePrior reads the former state of an object. One that can't be decoded, such as of
// a newer deployer, counts as without fields: the object is given back as far as
// possible.
func decodePrior(data json.RawMessage) provenance.Prior {
	var prior provenance.Prior
	if len(data) == 0 {
		return prior
	}
	if err := json.Unmarshal(data, &prior); err != nil {
		return provenance.Prior{FieldsOmitted: true}
	}
	return prior
}

func encodePrior(prior provenance.Prior) json.RawMessage {
	data, err := json.Marshal(prior)
	if err != nil {
		return json.RawMessage(`{"cut":true}`) // no error is known: it consists of strings and of JSON
	}
	return data
}

// withoutFields is a recorded former state without its fields.
func withoutFields(prior json.RawMessage) json.RawMessage {
	return encodePrior(decodePrior(prior).WithoutFields())
}

// adoptionOf returns the record's entry for an adopted object; nil for others.
func (j *journalWriter) adoptionOf(p *provenance.Provenance) *release.Adoption {
	if p.Adopted == nil {
		return nil
	}
	out := &release.Adoption{UID: p.UID, Revision: p.Adopted.Revision, From: p.Adopted.From, Final: p.Adopted.Final, Prior: encodePrior(p.Adopted.Prior)}
	if out.Revision == 0 {
		out.Revision = j.op.Next.Version
	}
	return out
}

// recordAdoption records the former state of an object before the run first writes it,
// unless it is recorded already. An object may turn out to be another owner's only when
// it is written.
func (j *journalWriter) recordAdoption(ctx context.Context, c apply.Change) error {
	if !verbs[j.op.Verb].creates {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	objects, key := j.op.Next.Journal.Objects, apply.Key(c.ID)
	adoption := j.adoptionOf(c.Provenance)
	if isRecorded(adoption, objects[key].Adopted) {
		return nil
	}
	j.adoptions[key] = adoption
	state := objects[key]
	state.Adopted = adoption
	objects[key] = state
	dropLargePriors(j.op.Next.Journal)
	return j.lock.Save(ctx, j.op.Next)
}

func isRecorded(adoption, recorded *release.Adoption) bool {
	return recorded != nil && recorded.UID == adoption.UID &&
		(bytes.Equal(recorded.Prior, adoption.Prior) || bytes.Equal(recorded.Prior, withoutFields(adoption.Prior)))
}

// confirmAdoptions makes adopted objects the release's for good after the revision has
// succeeded. Of their former state only the ownership metadata is kept.
func (j *journalWriter) confirmAdoptions() {
	for _, wave := range j.op.Plan.Waves {
		for _, c := range wave.Changes {
			a := j.op.Next.Journal.Objects[apply.Key(c.ID)].Adopted
			if a == nil || a.Final {
				continue
			}
			metadata := decodePrior(a.Prior).OwnershipMetadata
			a.Final, a.Prior = true, nil
			if len(metadata) > 0 {
				a.Prior = encodePrior(provenance.Prior{OwnershipMetadata: metadata})
			}
		}
	}
}
