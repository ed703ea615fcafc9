package deploy

import (
	"context"
	"fmt"
	"time"

	"deployer/release"
)

// grace is the least age at which what another tool left pending counts as dead:
// its --timeout isn't known, and applies to each of its waits.
const grace = time.Hour

// describe says in the lock what is going to be done; op is nil when that is
// decided later.
func describe(op *Operation) string {
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

// Recover settles what dead runs have left of a release and changes nothing
// else. The error is a *release.NotFoundError when there is no such release.
func (d *Deployer) Recover(ctx context.Context, name string, timeout time.Duration) (settled []release.Settled, err error) {
	l := &life{Deployer: d, name: name, opts: DoOptions{
		LockTimeout: timeout, Settled: func(s release.Settled) { settled = append(settled, s) },
	}}
	l.decide = func(ctx context.Context, d *Deployer) (*Operation, error) {
		history, err := d.existing(ctx, name)
		if err != nil {
			return nil, err
		}
		return d.basisOf("recover", history), nil
	}
	defer l.end(ctx)
	if err := l.begin(ctx); err != nil {
		return nil, err
	}
	return settled, nil
}
