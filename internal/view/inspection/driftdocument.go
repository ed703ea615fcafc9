package inspection

import (
	"deployer/apply/compare"
	"deployer/apply/inspect"
	"deployer/apply/ownership"
	"deployer/internal/deploy"
	"deployer/internal/hide"
	"deployer/internal/view/diff"
	"deployer/internal/view/output"
	"deployer/internal/view/page"
)

// A driftDocument is a drift as all its formats show it. Its JSON is a promise,
// see docs/json.md. No confidential value is in it.
type driftDocument struct {
	Format   int    `json:"format"`
	Document string `json:"document"` // "drift"
	page.Subject
	LatestRevision int            `json:"latest_revision"`
	LatestStatus   string         `json:"latest_status"`
	HasDrift       bool           `json:"has_drift"`
	Summary        driftSummary   `json:"summary"`
	Objects        []driftObject  `json:"objects"`
	Warnings       []page.Warning `json:"warnings"`
}

type driftSummary struct {
	Same      int                           `json:"same"`
	Estimated int                           `json:"estimated"`
	Unknown   int                           `json:"unknown"`
	Origins   map[inspect.Origin]driftCount `json:"origins"`
}

// A driftCount counts fields of objects that are there, and objects that came
// or went as a whole.
type driftCount struct {
	Objects  int `json:"objects"`
	Fields   int `json:"fields"`
	Expected int `json:"expected"` // of both, those that the next upgrade leaves unchanged
}

// A driftObject is the drift of one object by one field manager.
type driftObject struct {
	Object     string                  `json:"object"`
	Group      string                  `json:"group"`
	State      inspect.DriftState      `json:"state"`
	Origin     inspect.Origin          `json:"origin,omitempty"`
	Source     string                  `json:"source,omitempty"`
	Reason     string                  `json:"reason,omitempty"`
	Revision   int                     `json:"revision,omitempty"`
	Expected   bool                    `json:"expected"`
	Unverified string                  `json:"unverified,omitempty"`
	By         *ownership.FieldManager `json:"by,omitempty"`
	Fields     []driftField            `json:"fields,omitempty"`
}

type driftField struct {
	Path     string             `json:"path"`
	Type     compare.ChangeType `json:"kind"` // added, removed or changed since it was deployed
	Released any                `json:"released,omitempty"`
	Live     any                `json:"live,omitempty"`
	Hidden   bool               `json:"hidden,omitempty"`
	Expected bool               `json:"expected"`
	Revision int                `json:"revision,omitempty"`
}

// newDrift turns a drift into its document.
func newDrift(f *deploy.Drift) driftDocument {
	d := driftDocument{
		Format: output.JSONVersion, Document: "drift", Subject: page.SubjectAt(f.Release, f.Namespace, f.Place, f.Record),
		LatestRevision: f.Latest.Revision, LatestStatus: f.Latest.Status.String(), HasDrift: f.HasDrift(),
		Objects: []driftObject{}, Warnings: page.WarningsOf(f.Warnings, f.Hidden),
	}
	d.Summary = driftSummary{Same: f.Same, Estimated: f.Estimated, Origins: map[inspect.Origin]driftCount{}}
	for _, o := range f.Objects {
		d.Objects = append(d.Objects, driftObjects(o, f.Hidden)...)
	}
	d.count()
	return d
}

// driftObjects describes one object: as a whole, or by who has written it.
func driftObjects(o inspect.DriftedObject, hidden *hide.Texts) []driftObject {
	whole := driftObject{
		Object: o.ID.String(), Group: o.ID.Group, State: o.State, Origin: o.Origin, Source: o.Source,
		Reason: hidden.Hide(o.Reason), Revision: o.Revision, Expected: o.Expected, Unverified: hidden.Hide(o.Unverified),
	}
	if o.State != inspect.DriftChanged {
		return []driftObject{whole}
	}
	type author struct {
		origin inspect.Origin
		by     ownership.FieldManager
	}
	secret := hide.ConfidentialFields(o.Live, o.Desired)
	var out []driftObject
	at := map[author]int{}
	for _, f := range o.Fields {
		key := author{f.Origin, f.Owner}
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			part := whole
			part.Origin, part.Expected = f.Origin, true
			if f.Owner.Manager != "" {
				part.By = &f.Owner
			}
			out = append(out, part)
		}
		out[i].Fields = append(out[i].Fields, driftFieldOf(f, secret, hidden))
		out[i].Expected = out[i].Expected && f.Expected
	}
	return out
}

func driftFieldOf(f inspect.DriftField, secret hide.Fields, hidden *hide.Texts) driftField {
	out := driftField{Path: secret.HidePath(f.Path, hidden), Type: compare.Changed, Expected: f.Expected, Revision: f.Revision}
	switch {
	case !f.HasDesired:
		out.Type = compare.Added
	case !f.HasLive:
		out.Type = compare.Removed
	}
	out.Released, out.Live, out.Hidden = diff.ShownPair(secret, hidden, f.Names, f.Desired, f.Live)
	return out
}

func (d *driftDocument) count() {
	for _, o := range origins {
		d.Summary.Origins[o.origin] = driftCount{}
	}
	for _, o := range d.Objects {
		if o.State == inspect.DriftUnknown {
			d.Summary.Unknown++
			continue
		}
		n := d.Summary.Origins[o.Origin]
		if o.State != inspect.DriftChanged {
			n.Objects++
			if o.Expected {
				n.Expected++
			}
		}
		for _, f := range o.Fields {
			n.Fields++
			if f.Expected {
				n.Expected++
			}
		}
		d.Summary.Origins[o.Origin] = n
	}
}
