package deploy

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"deployer/apply"
	"deployer/internal/kube"
	"deployer/release"
)

// planObjects fills in the plan and the hooks of an operation. Upgrade, rollback and
// uninstall are the same from here on. earlier is nil unless it has been read.
func (d *Deployer) planObjects(ctx context.Context, op *Operation, history *release.History, crds []kube.Manifest, earlier *earlierRevisions) error {
	if earlier == nil {
		earlier = readEarlierRevisions(ctx, history)
	}
	records, req, err := earlier.records, earlier.request, earlier.err
	if err != nil {
		return err
	}
	op.earlier, op.Rendered.CRDs, op.Hidden, op.contributions = req.Revisions, crds, d.Hidden, contributionsOf(records)
	if len(records) > 0 {
		op.resumeAttempt(records[len(records)-1])
	}
	if !d.Settings.NoHooks {
		before, after := op.Verb.HookEvents()
		op.Hooks = Hooks{Before: hooksFor(before, op.Next.Hooks), After: hooksFor(after, op.Next.Hooks)}
	}
	if err := d.checkStoredHooks(ctx, op); err != nil {
		return err
	}
	req.CRDs, req.Fingerprints, req.Contributions = crds, fingerprintsOf(records), op.contributions
	req.Uninstall, req.Undo, req.BackTo = op.Verb == Uninstall, op.undoes != nil, op.Target
	if op.Target != 0 {
		req.MovedToCRDs = definitionsSince(op.Target, records, &earlier.parser)
	}
	if op.NewNamespace {
		req.NewNamespaces = []string{d.Namespace}
	}
	var unusable []error
	req.Hooks, unusable = objectsOfHooks(slices.Concat(op.Hooks.Before, op.Hooks.After))
	if err := cmp.Or(unusable...); err != nil {
		return err
	}
	before, _ := objectsOfHooks(op.Hooks.Before)
	req.PreHooks = len(before)
	if op.Verb != Uninstall {
		if req.Objects, err = earlier.parser.Parse(op.Next.Manifest); err != nil {
			return inputError{err}
		}
		req.OtherHooks, unusable = objectsOfHooks(op.Next.Hooks)
		for _, err := range unusable {
			op.Warnings = append(op.Warnings, fmt.Sprintf("%v; this hook will fail when it runs", err))
		}
	}
	d.collectHidden(append(records, op.Next), req.Revisions, crds, req.Objects, req.Hooks, req.OtherHooks)
	op.Removal.Description = d.Hidden.Hide(op.Removal.Description) // annotations and tables show it
	if op.Verb != Uninstall && op.Next.Info != nil {
		op.Next.Info.Description = d.Hidden.Hide(op.Next.Info.Description)
	}
	awaitPrefetch := d.prefetchForShow(ctx, op, history)
	var access errgroup.Group
	access.Go(func() error { return d.checkRecordAccess(ctx, op) })
	op.applier = d.newApplier(op)
	op.Plan, err = op.applier.Plan(ctx, req)
	awaitPrefetch()
	if err := cmp.Or(err, access.Wait()); err != nil {
		return err
	}
	if err := d.checkStoredObjects(ctx, op, history); err != nil {
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
		opts.PruneKinds = apply.ProtectedKinds()
	}
	return apply.New(d.Cluster, apply.Owner{Release: op.Release, Namespace: op.Namespace}, opts)
}

// mayBecomeStale reports whether objects may change between the plan and their turn: hooks run first, or the run waits
// between the waves.
func (o *Operation) mayBecomeStale() bool {
	return len(o.Hooks.Before) > 0 || slices.ContainsFunc(o.Plan.Waves, func(w apply.Wave) bool { return len(w.Await) > 0 })
}
