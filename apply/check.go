package apply

import (
	"context"
	"slices"

	"deployer/internal/kube"
)

// Check tells without a dry run whether the objects of a release can be applied: the cluster has their kinds, they fit the
// schemas of these, and with ownership none of them belongs to others. crds are of crds/, whose kinds count as served. It only
// reads the cluster, and needs no permission to write. The error is a *RejectedError that lists all that can't be applied.
func (a *Applier) Check(ctx context.Context, crds, objects []kube.Manifest, ownership bool) ([]Warning, error) {
	p, err := a.prepare(ctx, Request{CRDs: crds, Objects: objects})
	if err != nil {
		return nil, err
	}
	err = p.decideEach(ctx, p.mains, func(ctx context.Context, t *target) (Change, error) {
		if _, err := p.predictor.normalise(ctx, t); err != nil || !ownership || p.prerequisites.deferralOf(t) != nil {
			return Change{}, err
		}
		live, err := a.get(ctx, t.mapping, t.id)
		if err != nil || live == nil {
			return Change{}, objectError(t, "reading", err)
		}
		if p.claims.DecideExisting(p.existing(t, live)).Action == "" {
			err = p.notOurs(t, live)
		}
		return Change{}, err
	})
	if err != nil {
		return nil, err
	}
	rejections := slices.Clone(p.resolver.rejected)
	for _, t := range p.mains {
		if t.rejected != nil {
			rejections = append(rejections, *t.reject(t.rejected))
		}
	}
	if len(rejections) > 0 {
		return nil, &RejectedError{Rejections: sorted(rejections), When: WhenChecked}
	}
	return p.warnings.sorted(), nil
}
