package deploy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/apply"
	"deployer/chart"
	"deployer/release"
)

// A RollbackRequest asks for the content of an earlier revision. Revision 0
// means the last successful one before the latest.
type RollbackRequest struct {
	Name        string
	Revision    int
	Description string

	undoes *Operation // see Operation
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
	return op, d.planObjects(ctx, op, readEarlierRevisions(ctx, history))
}

// earlierRevisions is what earlier revisions may have left.
type earlierRevisions struct {
	records []*release.Record
	request apply.Request // with Revisions and Revisit; the rest is filled in later
	parser  chart.Parser  // has parsed their manifests
	err     error
}

func readEarlierRevisions(ctx context.Context, history *release.History) *earlierRevisions {
	e := &earlierRevisions{}
	if e.records, e.err = history.RecordsWithPossibleObjects(ctx); e.err != nil {
		return e
	}
	e.request.Revisions, e.err = revisionsOf(e.records, &e.parser)
	e.request.Revisit = keysToRevisit(e.records)
	e.request.Older = func(ctx context.Context) ([]apply.Revision, error) { return revisionsBefore(ctx, history, e.records) }
	return e
}

// recordsBefore are the stored records before those given, oldest first, without the corrupt ones.
func recordsBefore(ctx context.Context, history *release.History, records []*release.Record) ([]*release.Record, error) {
	history.LoadRemaining(ctx)
	var older []*release.Record
	for _, s := range history.Revisions {
		if s.Revision >= records[0].Version {
			break
		}
		record, err := history.Load(ctx, s.Revision)
		switch {
		case err == nil:
			older = append(older, record)
		case !errors.As(err, new(*release.CorruptError)) && !errors.As(err, new(*release.NotFoundError)):
			return nil, err
		}
	}
	return older, nil
}

// revisionsBefore are the stored revisions before records that can be read.
func revisionsBefore(ctx context.Context, history *release.History, records []*release.Record) ([]apply.Revision, error) {
	older, err := recordsBefore(ctx, history, records)
	if err != nil {
		return nil, err
	}
	var out []apply.Revision
	for _, r := range older {
		if revision, err := revisionsOf([]*release.Record{r}, &chart.Parser{}); err == nil { // one that can't be read tells nothing
			out = append(out, revision...)
		}
	}
	return out, nil
}

func revisionsOf(records []*release.Record, parser *chart.Parser) ([]apply.Revision, error) {
	var earlier []apply.Revision
	for _, r := range records {
		if err := r.CheckStoredInPlace(); err != nil {
			return nil, err
		}
		p := apply.Revision{Revision: r.Version, Status: r.Info.Status.String(), Succeeded: r.Succeeded(), Provenance: provenanceOf(r)}
		var err error
		if p.Objects, err = parser.Parse(r.Manifest); err != nil {
			return nil, fmt.Errorf("reading the manifest of revision %d: %w", r.Version, err)
		}
		p.Hooks, _ = objectsOfHooks(r.Hooks)
		earlier = append(earlier, p)
	}
	return earlier, nil
}

// fingerprintsOf gives the fingerprints of the latest revision, if deployer made it.
func fingerprintsOf(records []*release.Record) map[string]apply.Fingerprint {
	if len(records) == 0 || records[len(records)-1].Journal == nil {
		return nil
	}
	fingerprints := map[string]apply.Fingerprint{}
	for key, m := range records[len(records)-1].Journal.Objects {
		if m.Fingerprint == "" {
			continue // only planned, or no fingerprint is possible
		}
		fingerprints[key] = apply.Fingerprint{UID: m.UID, Hash: m.Fingerprint}
	}
	return fingerprints
}

// keysToRevisit lists the objects that any of the revisions kept for a temporary reason. A later one that
// failed may not have decided about them.
func keysToRevisit(records []*release.Record) []string {
	var keys []string
	for _, r := range records {
		if r.Journal != nil {
			keys = append(keys, r.Journal.Revisit...)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
