package apply

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/definition"
	"deployer/apply/provenance"
)

// A Contribution records which parts of a crds/ definition a release added.
type Contribution = definition.Contribution

// decideDefinition decides about a definition of crds/ that exists. By default the chart
// only adds to the definitions of others: an update that would remove something isn't
// made.
func (p *planning) decideDefinition(t *target, f facts) (verdict, error) {
	var contribution *Contribution
	if recorded := p.req.Contributions[Key(t.id)]; recorded.Describes(f.full) {
		contribution = &recorded
	}
	lost, stored := contribution.LossesOfOthers(definition.LossesByApply(f.full, f.desired)), definition.DroppedStoredVersions(f.full, f.desired)
	if !p.a.opts.CRDs.removesOthers() && len(lost)+len(stored) > 0 {
		return verdict{change: p.keepDefinition(t, f.full, f.desired, lost, stored)}, nil
	}
	v, err := p.decideExisting(t, f)
	return v.finally(err, func(c Change, err error) (Change, error) {
		if err != nil {
			return c, err
		}
		return p.protectParts(t, c, contribution), nil
	})
}

// protectParts keeps a definition as it is if its update, as the API server predicts it, removes what the release didn't add.
func (p *planning) protectParts(t *target, c Change, contribution *Contribution) Change {
	c.Contribution = contribution
	if c.Action != Update || c.Predicted == nil {
		return c
	}
	c.writes = boundTo(c.Live, c.writes) // the losses were computed from this version
	switch lost := contribution.LossesOfOthers(definition.LossesOf(c.Live, c.Predicted)); {
	case len(lost) > 0 && !p.a.opts.CRDs.removesOthers():
		return p.keepDefinition(t, c.Live, c.Desired, lost, definition.DroppedStoredVersions(c.Live, c.Desired))
	case len(lost) > 0:
		p.warnings.add(t.id, t.source, "the chart's definition removes what this release didn't add: %s", lost)
	}
	return c
}

// keepDefinition keeps a definition that has what others have added, or versions in which objects may be stored.
func (p *planning) keepDefinition(t *target, live, desired *unstructured.Unstructured, lost definition.Losses, stored []string) Change {
	whose := ""
	if owner := provenance.OwnerOf(live); owner != (Owner{}) && owner != p.a.owner {
		whose = " of release " + owner.String()
	}
	why := fmt.Sprintf("the definition%s in the cluster has what is not in the chart and was not added by this release: %s", whose, lost)
	way := "; to replace it anyway: --crds upgrade"
	switch {
	case len(stored) > 0 && len(lost) == 0:
		why = fmt.Sprintf("objects may be stored as %s, which the chart's definition lacks", strings.Join(stored, ", "))
		way = "; write them in the new version and take the old one out of status.storedVersions; the next release updates the definition then"
	case len(stored) > 0:
		way = fmt.Sprintf("; objects may be stored as %s, so even --crds upgrade can't replace it: use a chart whose definition has that version",
			strings.Join(stored, ", "))
	}
	return p.keepAsItIs(t, live, desired, why, way)
}

// keepAsItIs keeps a definition of crds/ as it is, or as absent as it is, and says why, and with way what to do about it.
func (p *planning) keepAsItIs(t *target, live, desired *unstructured.Unstructured, why, way string) Change {
	c := p.newChange(t, Keep)
	c.Live, c.Desired, c.Reason = live, desired, why
	p.warnings.add(t.id, t.source, "kept as it is: %s%s", why, way)
	return c
}

// DefinitionLosses lists what a definition allowed before it was written and no longer allows;
// empty when nothing is lost, and for other objects.
func (c Change) DefinitionLosses() string {
	if c.Action != Update || c.Live == nil || c.Applied == nil || !c.ID.IsCRD() {
		return ""
	}
	return definition.LossesOf(c.Live, c.Applied).String()
}

// ContributionToRecord is what a release has to remember of a definition of crds/ before the change is carried out, in case that
// nobody can record it afterwards, and after that; nil when nothing of it is its own.
func (c Change) ContributionToRecord() *Contribution {
	switch {
	case c.Applied != nil || !c.ID.IsCRD():
	case c.Action == Create && c.Desired != nil:
		return new(definition.ContributionOf(c.Desired))
	case c.Action == Update && c.Live != nil && c.Predicted != nil:
		return c.Contribution.Planned(c.Live, c.Predicted)
	}
	return c.Contribution
}

// contributionAfter is what a release has to remember of a definition of crds/ that it has
// dealt with; nil when nothing of it is its own. planned is what was to be remembered of it if the change came to pass.
func (c Change) contributionAfter(planned *Contribution) *Contribution {
	switch {
	case c.Applied == nil || !c.ID.IsCRD():
		return nil
	case planned != nil && planned.Before != "" && planned.Left == definition.ContributionOf(c.Applied).Left: // also when an answer was lost
		planned.Before = ""
		return planned
	case c.Action == Create:
		return new(definition.ContributionOf(c.Applied))
	case c.Action == Update && c.Live != nil:
		return c.Contribution.After(c.Live, c.Applied)
	}
	return c.Contribution
}
