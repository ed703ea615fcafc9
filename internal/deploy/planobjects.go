package deploy

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/apply/provenance"
)

// planObjects fills in the plan and the hooks of an operation. Upgrade, rollback and
// uninstall are the same from here on.
func (d *Deployer) planObjects(ctx context.Context, op *Operation, earlier *earlierRevisions) error {
	if earlier.err != nil {
		return earlier.err
	}
	op.earlier, op.Hidden, op.contributions = earlier.request.Revisions, d.Hidden, contributionsOf(earlier.records)
	if n := len(earlier.records); n > 0 {
		op.resumeAttempt(earlier.records[n-1])
	}
	if !d.Settings.NoHooks {
		before, after := op.Verb.HookEvents()
		op.Hooks = Hooks{Before: hooksFor(before, op.Next.Hooks), After: hooksFor(after, op.Next.Hooks)}
	}
	if err := d.checkStoredHooks(ctx, op); err != nil {
		return err
	}
	req, err := op.requestBeside(earlier)
	if err != nil {
		return err
	}
	d.collectHidden(append(earlier.records, op.Next), req.Revisions, req.CRDs, req.Objects, req.Hooks, req.OtherHooks)
	op.Removal.Description = d.Hidden.Hide(op.Removal.Description) // annotations and tables show it
	if op.Verb != Uninstall && op.Next.Info != nil {
		op.Next.Info.Description = d.Hidden.Hide(op.Next.Info.Description)
	}
	if err := d.makePlan(ctx, op, req); err != nil {
		return err
	}
	return d.checkStoredObjects(ctx, op)
}

// requestBeside returns the request that the plan of the operation answers; earlier is what revisions may have left.
func (o *Operation) requestBeside(earlier *earlierRevisions) (apply.Request, error) {
	req := earlier.request
	req.CRDs, req.Fingerprints, req.Contributions = o.Rendered.CRDs, fingerprintsOf(earlier.records), o.contributions
	req.Uninstall, req.Undo, req.BackTo = o.Verb == Uninstall, o.undoes != nil, o.Target
	if o.Target != 0 {
		req.MovedToCRDs = definitionsSince(o.Target, earlier.records, &earlier.parser)
	}
	if o.NewNamespace {
		req.NewNamespaces = []string{o.Namespace}
	}
	var unusable []error
	req.Hooks, unusable = objectsOfHooks(slices.Concat(o.Hooks.Before, o.Hooks.After))
	if err := cmp.Or(unusable...); err != nil {
		return req, err
	}
	before, _ := objectsOfHooks(o.Hooks.Before)
	req.PreHooks = len(before)
	if o.Verb == Uninstall {
		return req, nil
	}
	var err error
	if req.Objects, err = earlier.parser.Parse(o.Next.Manifest); err != nil {
		return req, inputError{err}
	}
	req.OtherHooks, unusable = objectsOfHooks(o.Next.Hooks)
	for _, err := range unusable {
		o.Warnings = append(o.Warnings, fmt.Sprintf("%v; this hook will fail when it runs", err))
	}
	return req, nil
}

// makePlan makes the plan, and asks for the permissions for records and reads what a plan is shown with in the meantime.
func (d *Deployer) makePlan(ctx context.Context, op *Operation, req apply.Request) (err error) {
	awaitPrefetch := d.prefetchForShow(ctx, op)
	older := req.Older
	req.Older = func(ctx context.Context) ([]apply.Revision, error) {
		awaitPrefetch()
		return older(ctx)
	}
	var access errgroup.Group
	access.Go(func() error { return d.checkRecordAccess(ctx, op) })
	op.applier = d.newApplier(op)
	op.Plan, err = op.applier.Plan(ctx, req)
	awaitPrefetch()
	if err := cmp.Or(err, access.Wait()); err != nil {
		return err
	}
	if op.wait {
		op.WaitsFor = d.waitsFor(op)
	}
	if !d.ForShow && op.mayBecomeStale() {
		op.request = &req
	}
	return nil
}

func (d *Deployer) newApplier(op *Operation) *apply.Applier {
	opts := apply.Options{
		Policies: d.Settings.Policies.Policies, Hidden: d.Hidden, Warn: d.Warn,
		RetryTimeout: d.Settings.Timeout, GoneTimeout: d.Settings.Timeout,
	}
	if op.Verb == Rollback || op.Rendered.ClusterIndependent { // a rollback renders nothing
		opts.PartialDiscovery = true
	}
	switch {
	case op.undoes != nil:
		// Keep protected kinds, also those that the failed run created: others may use
		// them by now.
		opts.PruneKinds = nil
	case op.Verb == Uninstall:
		// As with Helm, all objects of the templates are deleted; the annotation
		// helm.sh/resource-policy keeps one.
		opts.PruneKinds = decide.ProtectedKinds()
	}
	return apply.New(d.Cluster, provenance.Owner{Release: op.Release, Namespace: op.Namespace}, opts)
}

// mayBecomeStale reports whether objects may change between the plan and their turn, or after it: hooks run first, a Job of the
// release runs beside them, or the run waits between the waves.
func (o *Operation) mayBecomeStale() bool {
	return len(o.Hooks.Before) > 0 || ranProgram(o.Plan.Waves) || slices.ContainsFunc(o.Plan.Waves, func(w apply.Wave) bool { return len(w.Await) > 0 })
}
