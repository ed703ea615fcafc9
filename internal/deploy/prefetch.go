package deploy

import (
	"context"
	"sync"

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
