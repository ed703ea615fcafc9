package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/apply"
	"deployer/apply/inspect"
	"deployer/chart"
	"deployer/chart/retain"
	"deployer/internal/hide"
	"deployer/internal/program"
	"deployer/release"
)

// A Drift is how the cluster differs from what a release last deployed.
type Drift struct {
	Release   string
	Namespace string
	Place     Place
	Record    *release.Record  // the deployed revision
	Latest    *release.Summary // a later one may have failed
	*inspect.Drift
	Hidden *hide.Texts // what must not be shown
}

// Drift compares the live objects of a release with its deployed revision. If they differ, it makes known
// the confidential values of all stored revisions, for showing the differences. It only reads.
// The error is a *release.NotFoundError or a *release.NoDeployedError when there is no such revision, or a *StepTimeoutError.
func (d *Deployer) Drift(ctx context.Context, name string) (_ *Drift, err error) {
	ctx, done := LimitStep(ctx, StepDecide, d.Settings.Timeout)
	defer func() { err = done(err) }()
	history, err := d.existingHistory(ctx, name)
	if err != nil {
		return nil, err
	}
	record, err := d.deployedRecord(ctx, history)
	if err != nil {
		return nil, err
	}
	req, err := d.inspectionRequest(ctx, history, record)
	if err != nil {
		return nil, err
	}
	found, err := inspect.DriftOf(ctx, d.newApplier(d.newOperation(Upgrade, history)), req, record.Version)
	if err != nil {
		return nil, err
	}
	if len(found.Objects) > 0 {
		if _, err := d.storedRevisions(ctx, history); err != nil {
			return nil, err
		}
	}
	return &Drift{Release: name, Namespace: d.Namespace, Place: d.Place(), Record: record, Latest: history.Latest(), Drift: found, Hidden: d.Hidden}, nil
}

// inspectionRequest returns a request with what a revision has applied: its manifest, and those objects of
// its crds/ and hooks that its run applied.
func (d *Deployer) inspectionRequest(ctx context.Context, history *release.History, record *release.Record) (apply.Request, error) {
	earlier := readEarlierRevisions(ctx, history)
	records, req, err := earlier.records, earlier.request, earlier.err
	if err != nil {
		return req, err
	}
	if req.Objects, err = earlier.parser.Parse(record.Manifest); err != nil {
		return req, fmt.Errorf("reading the manifest of revision %d: %w", record.Version, err)
	}
	req.OtherHooks, _ = objectsOfHooks(record.Hooks)
	var unusable []error
	req.Hooks, unusable = objectsOfHooks(hooksThatRan(record))
	if err := cmp.Or(unusable...); err != nil {
		return req, err
	}
	req.CRDs = appliedCRDs(record, &chart.Parser{})
	d.collectHidden(append(records, record), req.Revisions, req.CRDs, req.Objects, req.OtherHooks)
	return req, nil
}

// hooksThatRan returns the hooks that ran successfully with a revision, or with the killed run that it continues. Objects of
// other hooks may be left by an earlier revision, or may not exist.
func hooksThatRan(record *release.Record) []*helmrelease.Hook {
	ranBefore := func(h *helmrelease.Hook) bool {
		return record.Journal != nil && slices.ContainsFunc(h.Events, func(event helmrelease.HookEvent) bool { return record.Journal.Hooks[hookKey(event, h)] != "" })
	}
	return slices.DeleteFunc(slices.Clone(record.Hooks), func(h *helmrelease.Hook) bool {
		return h.LastRun.Phase != helmrelease.HookPhaseSucceeded || h.LastRun.StartedAt.Before(record.Info.LastDeployed) && !ranBefore(h)
	})
}

func (d *Deployer) deployedRecord(ctx context.Context, history *release.History) (*release.Record, error) {
	latest, deployed := history.Latest(), history.Deployed()
	switch {
	case deployed != nil:
		return history.Load(ctx, deployed.Revision)
	case latest.Status == helmrelease.StatusUninstalled:
		return nil, uninstalledError(history.Namespace, history.Name, latest.Revision)
	}
	return nil, &release.NoDeployedError{Namespace: history.Namespace, Name: history.Name}
}

// HasDrift reports whether anything differs from the deployed revision, except what a
// deployment would leave as it is, such as replicas that an autoscaler set.
func (d *Drift) HasDrift() bool {
	return slices.ContainsFunc(d.Objects, func(o inspect.DriftedObject) bool {
		return o.State != inspect.DriftChanged && o.State != inspect.DriftUnknown && !o.Expected ||
			slices.ContainsFunc(o.Fields, func(f inspect.DriftField) bool { return !f.Expected })
	})
}

// Unverified returns an error when objects could not be read, so that it is unknown
// whether they have drifted; nil when all could.
func (d *Drift) Unverified() error {
	n := 0
	for _, o := range d.Objects {
		if o.State == inspect.DriftUnknown {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return program.WithHint(fmt.Errorf("release %s: %d of its objects could not be checked, so it may have drifted", d.Release, n),
		"allow the account that deployer runs as to get and list these objects (kubectl auth can-i --list)")
}

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
	op := d.newOperation(Upgrade, history) // which is never carried out
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
