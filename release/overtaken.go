package release

import (
	"context"
	"fmt"
)

// While a run is at work, no later revision may be recorded. Other runs of deployer respect the Lease,
// and most commands of Helm refuse a release whose latest revision is pending. `helm rollback` does
// neither: it makes a new revision and overwrites objects that the run has just applied.
// helm.sh/helm/v3/pkg/action/rollback.go

// loseIfOvertaken gives up the lock if a revision after the one of this run is recorded. What can't be
// read now is found by a later call, or by Finish.
func (l *Lock) loseIfOvertaken(ctx context.Context) {
	revision := l.inProgress.Load()
	if revision == 0 {
		return
	}
	later, err := l.store.getSecret(ctx, SecretName(l.name, int(revision)+1))
	if err == nil && l.inProgress.Load() == revision { // otherwise it may be this run's, as of an undo
		l.lease.cancel(l.overtakenError(int(revision)+1, later.Labels["status"]))
	}
}

// later returns the first revision after one; nil if there is none.
func (l *listing) later(revision int) *Summary {
	for i := range l.heads {
		if l.heads[i].Revision > revision {
			return &l.heads[i]
		}
	}
	return nil
}

func (l *Lock) overtakenError(revision int, status string) *LockLostError {
	return l.lease.lostError(fmt.Sprintf("another tool recorded revision %d, which is %s, during the run", revision, status))
}
