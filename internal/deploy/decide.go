package deploy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/apply"
	"deployer/chart"
	"deployer/chart/generated"
	"deployer/internal/kube"
	"deployer/release"
)

// planObjects fills in the plan and the hooks of an operation. Upgrade, rollback and
// uninstall are the same from here on. earlier is nil unless it has been read.
func (d *Deployer) planObjects(ctx context.Context, op *Operation, history *release.History, crds []kube.Manifest, earlier *earlierRevisions) error {
	var packing sync.WaitGroup
	defer packing.Wait()
	if !d.ForShow && op.Verb != Uninstall {
		packing.Go(func() { d.Releases.PackAhead(op.Next) }) // planning mostly waits for answers
	}
	if earlier == nil {
		earlier = readEarlierRevisions(ctx, history)
	}
	owned, req, err := earlier.records, earlier.request, earlier.err
	if err != nil {
		return err
	}
	op.earlier, op.Rendered.CRDs, op.Hidden, op.contributions = req.Revisions, crds, d.Hidden, contributionsOf(owned)
	if len(owned) > 0 {
		op.resumeAttempt(owned[len(owned)-1])
	}
	if !d.Settings.NoHooks {
		before, after := op.Verb.HookEvents()
		op.Hooks = Hooks{Before: hooksFor(before, op.Next.Hooks), After: hooksFor(after, op.Next.Hooks)}
	}
	if err := d.checkStoredHooks(ctx, op); err != nil {
		return err
	}
	req.CRDs, req.Fingerprints, req.Contributions = crds, fingerprintsOf(owned), op.contributions
	req.Uninstall, req.Undo, req.BackTo = op.Verb == Uninstall, d.undoing, op.Target
	if op.Target != 0 {
		req.MovedToCRDs = definitionsSince(op.Target, owned, &earlier.parser)
	}
	if op.NewNamespace {
		req.NewNamespaces = []string{d.Namespace}
	}
	var unusable []error
	req.Hooks, unusable = objectsOfHooks(slices.Concat(op.Hooks.Before, op.Hooks.After))
	if err := cmp.Or(unusable...); err != nil {
		return err
	}
	if op.Verb != Uninstall {
		if req.Objects, err = earlier.parser.Parse(op.Next.Manifest); err != nil {
			return err
		}
		req.OtherHooks, unusable = objectsOfHooks(op.Next.Hooks)
		for _, err := range unusable {
			op.Warnings = append(op.Warnings, fmt.Sprintf("%v; this hook will fail when it runs", err))
		}
	}
	d.collectHidden(append(owned, op.Next), req.Revisions, crds, req.Objects, req.Hooks, req.OtherHooks)
	op.Removal.Description = d.Hidden.Hide(op.Removal.Description) // annotations and tables show it
	if op.Verb != Uninstall && op.Next.Info != nil {
		op.Next.Info.Description = d.Hidden.Hide(op.Next.Info.Description)
	}
	awaitPrefetch := d.prefetchForShow(ctx, op, history)
	var access errgroup.Group
	access.Go(func() error { return d.checkRecordAccess(ctx, op) })
	op.Plan, err = d.newApplier(op).Plan(ctx, req)
	awaitPrefetch()
	if err := cmp.Or(err, access.Wait()); err != nil {
		return err
	}
	if d.Settings.Wait {
		op.WaitsFor = d.waitsFor(op)
	}
	return nil
}

// prefetchForShow begins to read the records that showing a plan with changes takes, see
// hideStoredRevisions, while the plan is made. Call the function that it returns, which waits
// for them, before history is used again.
func (d *Deployer) prefetchForShow(ctx context.Context, op *Operation, history *release.History) func() {
	deployed := history.Deployed()
	if !d.ForShow || deployed == nil || op.Verb == Uninstall {
		return func() {}
	}
	if record, err := history.Load(ctx, deployed.Revision); err != nil || record.Manifest == op.Next.Manifest {
		return func() {} // there is hardly anything to show
	}
	var loading sync.WaitGroup
	loading.Go(func() { history.LoadRemaining(ctx) })
	return loading.Wait
}

// mostReadAhead is how many records are read before it is certain that they are needed: as many as a release has by
// default.
const mostReadAhead = 10

// willShowChanges reports whether a plan probably has changes to show, for which all records are read: base, the
// revision before, has renewed a value that an earlier one had generated, and so will the next. base may be nil.
func (d *Deployer) willShowChanges(history *release.History, base *release.Record) bool {
	if !d.ForShow || base == nil || base.Version == 1 || len(history.Revisions) > mostReadAhead {
		return false
	}
	return slices.ContainsFunc(recordedGenerated(base), func(v generated.Value) bool { return !v.Kept() })
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
	case d.undoing:
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

// fingerprintsOf gives the fingerprints of the latest revision, if deployer made it.
func fingerprintsOf(owned []*release.Record) map[string]apply.Fingerprint {
	if len(owned) == 0 || owned[len(owned)-1].Journal == nil {
		return nil
	}
	fingerprints := map[string]apply.Fingerprint{}
	for key, m := range owned[len(owned)-1].Journal.Objects {
		if m.Fingerprint == "" {
			continue // only planned, or no fingerprint is possible
		}
		fingerprints[key] = apply.Fingerprint{UID: m.UID, Hash: m.Fingerprint}
	}
	return fingerprints
}

// keysToRevisit lists what earlier releases kept and wanted looked at again. A
// failed one may not have come to it, so those since the last successful one
// all count.
func keysToRevisit(owned []*release.Record) []string {
	var keys []string
	for _, r := range owned {
		if r.Journal != nil {
			keys = append(keys, r.Journal.Revisit...)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// earlierRevisions is what earlier revisions may have left.
type earlierRevisions struct {
	records []*release.Record
	request apply.Request // that begins with them
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
	return e
}

func revisionsOf(owned []*release.Record, parser *chart.Parser) ([]apply.Revision, error) {
	var earlier []apply.Revision
	for _, r := range owned {
		p := apply.Revision{Revision: r.Version, Status: r.Info.Status.String(), Provenance: provenanceOf(r)}
		var err error
		if p.Objects, err = parser.Parse(r.Manifest); err != nil {
			return nil, fmt.Errorf("reading the manifest of revision %d: %w", r.Version, err)
		}
		p.Hooks, _ = objectsOfHooks(r.Hooks)
		earlier = append(earlier, p)
	}
	return earlier, nil
}

// objectsOfHooks returns the objects of hooks, each hook once, even if it runs at two
// events. Helm records invalid hooks, such as ones without a name, and fails only when
// they run; unusable has their errors.
func objectsOfHooks(hooks []*helmrelease.Hook) (out []kube.Manifest, unusable []error) {
	seen := map[*helmrelease.Hook]bool{}
	for _, h := range hooks {
		if seen[h] {
			continue
		}
		seen[h] = true
		objects, err := objectsOfHook(h)
		if err != nil {
			unusable = append(unusable, err)
			continue
		}
		out = append(out, objects...)
	}
	return out, unusable
}

// existingHistory reads the history of a release that has one.
func (d *Deployer) existingHistory(ctx context.Context, name string) (*release.History, error) {
	if err := release.ValidateName(name); err != nil {
		return nil, err
	}
	history, err := d.Releases.HistoryWithRecords(ctx, name)
	if err == nil && history.Latest() == nil {
		err = &release.NotFoundError{Namespace: d.Namespace, Name: name}
	}
	return history, err
}

// newRecord returns the record of a new revision.
func newRecord(content helmrelease.Release, notes, description string) *release.Record {
	content.Info = &helmrelease.Info{Notes: notes, Description: description}
	content.Hooks = withoutLastRuns(content.Hooks)
	return &release.Record{Release: content, Journal: &release.Journal{}}
}

// withoutLastRuns copies hooks without the outcomes of an earlier run.
func withoutLastRuns(hooks []*helmrelease.Hook) []*helmrelease.Hook {
	out := make([]*helmrelease.Hook, 0, len(hooks))
	for _, h := range hooks {
		hook := *h
		hook.LastRun = helmrelease.HookExecution{}
		out = append(out, &hook)
	}
	return out
}
