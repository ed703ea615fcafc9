package deploy

import (
	"context"
	"maps"

	helmrelease "helm.sh/helm/v3/pkg/release"
)

// A RollbackRequest asks for the content of an earlier revision. Revision 0
// means the last successful one before the latest.
type RollbackRequest struct {
	Name        string
	Revision    int
	Description string

	undoes *failedRun // see Operation
}

// Rollback decides a rollback. It only reads.
func (d *Deployer) Rollback(ctx context.Context, req RollbackRequest) (*Operation, error) {
	history, err := d.existingHistory(ctx, req.Name)
	if err != nil {
		return nil, err
	}
	target, err := history.RollbackTarget(ctx, req.Revision)
	if err != nil {
		return nil, err
	}
	next := newRecord(helmrelease.Release{
		Name: req.Name, Namespace: d.Namespace, Version: history.Next(), Chart: target.Chart, Config: target.Config,
		Manifest: target.Manifest, Hooks: target.Hooks, Labels: maps.Clone(target.Labels),
	}, target.Info.Notes, req.Description)
	next.Info.FirstDeployed = target.Info.FirstDeployed
	if target.Journal != nil {
		next.Journal.Confidential = target.Journal.Confidential
		next.Journal.Generated = generatedAt(target)
	}
	op := d.newOperation(Rollback, history).undoing(req.undoes)
	op.Next, op.Target = next, target.Version
	d.replaceRemovedAPIs(ctx, op)
	return op, d.planObjects(ctx, op, history, nil, nil)
}
