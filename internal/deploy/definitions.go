package deploy

import (
	"deployer/apply"
	"deployer/internal/kube"
	"deployer/release"
)

// definitionsOf returns the contributions of revisions to the definitions in crds/: those
// that the latest revision recorded, or for revisions without such a record the CRDs of
// their charts. Of these only the chart's own are known, because subcharts aren't
// recorded.
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
			continue // unreadable ones count as added by others
		}
		for _, m := range crds {
			out[apply.Key(kube.IDOf(m.Object))] = apply.ContributionOf(m.Object)
		}
	}
	return out
}

// definitionsAfter returns the contributions to record: the earlier ones, updated by the
// changes that were carried out.
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
