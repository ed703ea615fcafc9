package deploy

import (
	"slices"

	"deployer/apply"
	"deployer/apply/definition"
	"deployer/chart"
	"deployer/internal/kube"
	"deployer/release"
)

// contributionsOf returns the contributions of revisions to the definitions in crds/: those that the latest
// revision recorded. For revisions without such a record it takes the CRDs of their charts, without those
// of subcharts, which aren't recorded.
func contributionsOf(records []*release.Record) map[string]apply.Contribution {
	out := map[string]apply.Contribution{}
	var parser chart.Parser
	for _, r := range records {
		if r.Journal != nil && r.Journal.Contributions != nil {
			out = map[string]apply.Contribution{}
			for key, d := range r.Journal.Contributions {
				out[key] = apply.Contribution(d)
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
func contributionsAfter(before map[string]apply.Contribution, changes []apply.Change, hasEnded bool) map[string]release.Contribution {
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
