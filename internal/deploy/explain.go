package deploy

import (
	"context"
	"errors"

	"deployer/apply/inspect"
	"deployer/chart/retain"
	"deployer/internal/hide"
	"deployer/release"
)

// An Explanation says who set the fields of an object of a release.
type Explanation struct {
	Release   string
	Namespace string
	Place     Place
	Record    *release.Record // the revision that it is compared with
	*inspect.Explanation
	Generated []retain.Value // the fields of the object that are generated, as recorded
	Hidden    *hide.Texts    // what must not be shown
}

// Explain reports who set the fields of an object of a release. See inspect.Request
// for the syntax. It starts from the deployed revision, or from the latest one if none was
// ever deployed. It only reads.
func (d *Deployer) Explain(ctx context.Context, name, object, field string) (*Explanation, error) {
	history, err := d.existingHistory(ctx, name)
	if err != nil {
		return nil, err
	}
	record, err := d.deployedRecord(ctx, history)
	if errors.As(err, new(*release.NoDeployedError)) {
		record, err = history.Load(ctx, history.Latest().Revision)
	}
	if err != nil {
		return nil, err
	}
	req := inspect.Request{Deployed: record.Version, Object: object, Field: field}
	if req.Applied, err = d.inspectionRequest(ctx, history, record); err != nil {
		return nil, err
	}
	if req.Stored, err = d.storedRevisions(ctx, history); err != nil {
		return nil, err
	}
	op := upgradeOperation(history)
	found, err := inspect.Explain(ctx, d.newApplier(op), req)
	if err != nil {
		return nil, err
	}
	op.Rendered.Generated = recordedGenerated(record)
	return &Explanation{
		Release: name, Namespace: d.Namespace, Place: d.Place(), Record: record, Explanation: found,
		Generated: op.GeneratedIn(found.Object.ID), Hidden: d.Hidden,
	}, nil
}
