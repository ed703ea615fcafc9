package deploy

import (
	"context"

	"deployer/internal/kube"
	"deployer/release"
)

// A RenderedRequest is an install or upgrade whose record was rendered before.
type RenderedRequest struct {
	Verb            Verb
	Next            *release.Record // the complete record; Begin refuses it if it is no longer the next one
	CRDs            []kube.Manifest // of the chart's crds/ directory
	CreateNamespace bool
}

// DeployRendered decides what deploying a record that was rendered before takes now.
// It only reads.
func (d *Deployer) DeployRendered(ctx context.Context, req RenderedRequest) (*Operation, error) {
	history, missing, err := d.readFirst(ctx, req.Next.Name, req.CreateNamespace)
	if err != nil {
		return nil, err
	}
	op := d.newOperation(req.Verb, history)
	op.Next, op.NewNamespace = req.Next, missing
	if err := d.awaitDefaultAccount(ctx, op); err != nil {
		return nil, err
	}
	op.Rendered.Generated = recordedGenerated(req.Next)
	return op, d.planObjects(ctx, op, history, req.CRDs, nil)
}
