package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"deployer/apply/provenance"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Contribution records which parts of a crds/ definition this release added, and how it
// left the definition. Parts that others added are removed only on request.
type Contribution struct {
	Left   string   `json:"left"`             // digest of what the definition allowed
	Whole  bool     `json:"whole,omitempty"`  // all of it came with this release
	Places []string `json:"places,omitempty"` // else what did: "v1 spec.size", "v2 " for a version
}

// mostPlaces limits the places recorded for one definition. With more, none are recorded,
// and the definition counts as added by others.
const mostPlaces = 200

// ContributionOf returns the contribution of a release that created a definition as its
// manifest has it. It is for revisions that have no recorded contribution.
func ContributionOf(crd *unstructured.Unstructured) Contribution {
	return Contribution{Left: definitionDigest(crd), Whole: true}
}

// contributionOf returns this release's contribution to a live definition; nil unless the
// definition is exactly as the release left it.
func (p *planning) contributionOf(t *target, live *unstructured.Unstructured) *Contribution {
	contribution, ok := p.req.Contributions[Key(t.id)]
	if !ok || contribution.Left == "" || contribution.Left != definitionDigest(live) {
		return nil
	}
	return &contribution
}

// lossesOfOthers are those of losses that b hasn't brought.
func (c *Contribution) lossesOfOthers(losses []loss) []loss {
	if c == nil {
		return losses
	}
	if c.Whole {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(losses), func(l loss) bool {
		return slices.ContainsFunc(c.Places, func(place string) bool { return placeCovers(place, l.place()) })
	})
}

// updateDefinition decides about a definition of crds/ that exists. By default the chart
// only adds to the definitions of others: an update that would remove something isn't
// made.
func (p *planning) updateDefinition(ctx context.Context, t *target, desired, live *unstructured.Unstructured) (Change, error) {
	contribution := p.contributionOf(t, live)
	adds := p.a.opts.CRDs == AddCRDs
	losses := lossesOf(live, desired)
	if conversionOf(desired) == "" { // then the live one stays
		losses = slices.DeleteFunc(losses, func(l loss) bool { return l.text == lostConversion })
	}
	if gone := contribution.lossesOfOthers(losses); adds && len(gone) > 0 {
		return p.leaveDefinition(t, live, desired, gone), nil
	}
	c, err := p.decideExisting(ctx, t, desired, live)
	if err != nil {
		return c, err
	}
	c.previousContribution = contribution
	if c.Action != Update || c.Predicted == nil {
		return c, nil
	}
	c.execution.requireVersionOf(live) // and to nothing that others make of it meanwhile
	switch gone := contribution.lossesOfOthers(lossesOf(live, c.Predicted)); {
	case len(gone) > 0 && adds:
		return p.leaveDefinition(t, live, desired, gone), nil
	case len(gone) > 0:
		p.warnings.add(t.id, t.source, "the chart's definition removes what this release didn't add: %s", lossesText(gone))
	}
	return c, nil
}

// leaveDefinition leaves a definition as it is, and says why.
func (p *planning) leaveDefinition(t *target, live, desired *unstructured.Unstructured, gone []loss) Change {
	c := p.change(t, Keep)
	c.Live, c.Desired = live, desired
	c.manifestHash = "" // no fingerprint: the next release looks again
	whose := ""
	if owner := provenance.OwnerOf(live); owner != (Owner{}) && owner != p.a.owner {
		whose = " of release " + owner.String()
	}
	c.Reason = fmt.Sprintf("the definition%s in the cluster has what the chart's lacks and this release didn't add: %s", whose, lossesText(gone))
	way := "to replace it anyway: --crds upgrade"
	if stored := storedIn(live, desired); len(stored) > 0 {
		way = fmt.Sprintf("objects may be stored as %s, so even --crds upgrade can't replace it: use a chart whose definition has that version",
			strings.Join(stored, ", "))
	}
	p.warnings.add(t.id, t.source, "kept as it is: %s; %s", c.Reason, way)
	return c
}

// storedIn returns the versions in which objects may be stored and that the next
// definition lacks. The API server refuses to drop them.
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#upgrade-existing-objects-to-a-new-stored-version
func storedIn(live, next *unstructured.Unstructured) []string {
	stored, _, _ := unstructured.NestedStringSlice(live.Object, "status", "storedVersions")
	return slices.DeleteFunc(stored, func(version string) bool { return versionOf(next, version) != nil })
}

// mostListed is how many losses a text names.
const mostListed = 12

func lossesText(losses []loss) string {
	var names []string
	for i, l := range losses {
		if i == mostListed {
			names = append(names, fmt.Sprintf("and %d more", len(losses)-i))
			break
		}
		names = append(names, l.String())
	}
	return strings.Join(names, ", ")
}

// TakesAway lists what a definition allowed before it was written and no longer allows;
// empty when nothing is lost, and for other objects.
func (c Change) TakesAway() string {
	if c.Action != Update || c.Live == nil || c.Applied == nil || !c.ID.IsCRD() {
		return ""
	}
	return lossesText(lossesOf(c.Live, c.Applied))
}

// contributionAfter is what a release has to remember of a definition of crds/ that it has
// dealt with; nil when nothing of it is its own.
func (c Change) contributionAfter() *Contribution {
	switch {
	case c.Applied == nil || !c.ID.IsCRD():
		return nil
	case c.Action == Create:
		contribution := ContributionOf(c.Applied)
		return &contribution
	case c.Action == Update && c.Live != nil:
		contribution := Contribution{Left: definitionDigest(c.Applied)}
		if c.previousContribution != nil {
			contribution.Whole, contribution.Places = c.previousContribution.Whole, c.previousContribution.Places
		}
		if contribution.Whole {
			return &contribution
		}
		for _, l := range lossesOf(c.Applied, c.Live) {
			if !slices.Contains(contribution.Places, l.place()) {
				contribution.Places = append(slices.Clone(contribution.Places), l.place())
			}
		}
		if len(contribution.Places) == 0 || len(contribution.Places) > mostPlaces {
			return nil
		}
		return &contribution
	}
	return c.previousContribution
}
