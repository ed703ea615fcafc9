package deploy

import (
	"context"
	"time"

	"deployer/release"
)

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
		return d.newOperation(recoverOnly, history), nil
	}
	defer l.cleanUp(ctx)
	if err := l.decideBeforeLock(ctx); err != nil {
		return nil, err
	}
	history, err := l.lockAndRecover(ctx)
	if err == nil && history.Latest() == nil { // another run has uninstalled it
		err = &release.NotFoundError{Namespace: d.Namespace, Name: name}
	}
	return recovered, err
}
