package deploy

import (
	"context"
	"fmt"
	"time"

	"deployer/release"
)

// leastPendingAge is the minimum age at which a record that another tool left pending
// counts as dead: that tool's --timeout isn't known, and applies to each of its waits.
const leastPendingAge = time.Hour

// lockDescription returns the description of the operation for the lock; op is nil when
// it will be decided later.
func lockDescription(op *Operation) string {
	switch {
	case op == nil:
		return "to be decided"
	case op.Verb == Uninstall || op.Next == nil:
		return string(op.Verb)
	case op.Verb == Test:
		return fmt.Sprintf("test of revision %d", op.Next.Version)
	}
	return fmt.Sprintf("%s to revision %d", op.Verb, op.Next.Version)
}

// Recover records as failed what dead runs have left of a release, and changes
// nothing else. With an error it returns what it has recorded before. The error is a
// *release.NotFoundError when there is no such release.
func (d *Deployer) Recover(ctx context.Context, name string, timeout time.Duration) (recovered []release.Recovered, err error) {
	l := &lifecycle{Deployer: d, name: name, opts: DoOptions{
		LockTimeout: timeout, OnRecovered: func(s release.Recovered) { recovered = append(recovered, s) },
	}}
	l.decide = func(ctx context.Context, d *Deployer) (*Operation, error) {
		history, err := d.existingHistory(ctx, name)
		if err != nil {
			return nil, err
		}
		return d.newOperation("recover", history), nil
	}
	defer l.cleanUp(ctx)
	err = l.decideUnderLock(ctx)
	return recovered, err
}
