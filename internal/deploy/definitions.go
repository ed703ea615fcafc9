package deploy

import (
	"deployer/apply"
	"deployer/internal/kube"
	"deployer/release"
)

// definitionsOf is what revisions have brought of the definitions in crds/: as the
// latest of them says, or for those that don't say it, what their charts have.
// Of these only the chart itself is recorded, not its subcharts.
func definitionsOf(owned []*release.Record) map[string]apply.Contribution {
	out := map[string]apply.Contribution{}
	for _, r := range owned {
		if r.Journal != nil && r.Journal.Definitions != nil {
			out = map[string]apply.Contribution{}
			for key, d := range r.Journal.Definitions {
				out[key] = apply.Contribution(d)
			}
			continue
		}
		applied := appliedCRDs
		if r.Journal == nil {
			applied = installedCRDs
		}
		crds, err := applied(r)
		if err != nil {
			continue // what can't be read counts as brought by others
		}
		for _, m := range crds {
			out[apply.Key(kube.IDOf(m.Object))] = apply.ContributionOf(m.Object)
		}
	}
	return out
}

// definitionsAfter is what a record remembers of definitions in crds/: what earlier
// ones did, and what has been carried out since.
func definitionsAfter(before map[string]apply.Contribution, changes []apply.Change) map[string]release.Definition {
	out := map[string]release.Definition{}
	for key, b := range before {
		out[key] = release.Definition(b)
	}
	for _, c := range changes {
		if c.Contribution != nil {
			out[apply.Key(c.ID)] = release.Definition(*c.Contribution)
		}
	}
	return out
}
