package deploy

import (
	"context"
	"slices"
	"sync"

	"deployer/chart/retain"
	"deployer/release"
)

// prefetchForShow begins to read all records of the release while the plan is made, because showing a plan
// with changes takes them: see hideStoredRevisions. The function that it returns waits for them. Call it
// before history is used again.
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

// willShowChanges reports whether a plan will probably have changes to show: the previous revision, base,
// has renewed a generated value, and so will the next one. base may be nil.
func (d *Deployer) willShowChanges(history *release.History, base *release.Record) bool {
	if !d.ForShow || base == nil || base.Version == 1 || len(history.Revisions) > mostReadAhead {
		return false
	}
	return slices.ContainsFunc(recordedGenerated(base), func(v retain.Value) bool { return !v.Kept() })
}
