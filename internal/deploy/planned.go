package deploy

import (
	"context"

	"deployer/internal/kube"
	"deployer/release"
)

// A PlannedRequest is an install or upgrade whose record was rendered before.
type PlannedRequest struct {
	Verb            Verb
	Next            *release.Record // whole; Begin refuses it when it isn't the next one any more
	CRDs            []kube.Manifest // of the chart's crds/ directory
	CreateNamespace bool
}

// Planned decides what deploying a record that was rendered before takes now.
// It only reads.
func (d *Deployer) Planned(ctx context.Context, req PlannedRequest) (*Operation, error) {
	missing, err := d.namespaceMissing(ctx, req.CreateNamespace)
	if err != nil {
		return nil, err
	}
	history, err := d.Releases.History(ctx, req.Next.Name)
	if err != nil {
		return nil, err
	}
	op := d.basisOf(req.Verb, history)
	op.Next, op.NewNamespace = req.Next, missing
	if err := d.awaitAccount(ctx, op); err != nil {
		return nil, err
	}
	op.Generated = op.generatedOf(req.Next)
	return op, d.decide(ctx, op, history, req.CRDs)
}
