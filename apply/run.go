package apply

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"deployer/apply/verify"
	"deployer/internal/kube"
)

// Run carries out the changes of one list: Plan.CRDs, a wave, or Plan.Prune. onDone is
// called for each change that succeeds, unchanged and kept ones too, one after the other,
// with Applied set to the server's object. When ctx ends no new request is started; Run
// returns when the last running one has ended. The changes in the slice are replaced by
// what was done, except deletions, so that predictions can be freed. The error joins an *ObjectError for
// each failed change. Changes with a Deferral are decided first. If the server rejects
// some of them, the error is a late *RejectedError and nothing was carried out.
func (a *Applier) Run(ctx context.Context, changes []Change, onDone func(Change)) error {
	if err := permitted(changes); err != nil {
		return err
	}
	if err := a.redecideDeferred(ctx, [][]Change{changes}, true); err != nil {
		return err
	}
	if len(changes) > 0 && changes[0].removes() {
		return a.executeDeletions(ctx, changes, onDone)
	}
	awaited := make([]*prerequisites, len(changes))
	for i, c := range changes {
		awaited[i] = c.awaitedBy
	}
	errs := a.executeAll(ctx, changes, onDone)
	err := a.awaitKinds(ctx, definitionsIn(changes, errs))
	for i, prerequisites := range awaited {
		if prerequisites != nil && errs[i] == nil && err == nil {
			prerequisites.markPresent(changes[i].ID)
		}
	}
	return errors.Join(errors.Join(errs...), err)
}

// executeAll carries changes out side by side. Each has its error, nil for those
// that ended well; the last one is that of the whole.
func (a *Applier) executeAll(ctx context.Context, changes []Change, onDone func(Change)) []error {
	errs := make([]error, len(changes)+1)
	var mu sync.Mutex
	errs[len(changes)] = a.forEach(ctx, len(changes), func(i int) error {
		done, err := a.execute(ctx, changes[i])
		if err != nil {
			errs[i] = err
			return nil
		}
		if done.previousContribution != nil || done.execution != nil && done.execution.t != nil && done.execution.t.fromCRDs {
			done.Contribution = done.contributionAfter()
		}
		done.execution, done.Predicted = nil, nil // the last execution dropped frees the planning
		mu.Lock()
		defer mu.Unlock()
		changes[i] = done
		onDone(done)
		return nil
	})
	return errs
}

// maxAttempts limits how often an object is decided again because somebody else wrote it
// between our read and our write. A controller that follows pods becoming ready may cause
// a dozen in a row. With the pauses of pauseAfterRace this takes about 15 seconds.
const maxAttempts = 20

// pauseAfterRace waits after a lost race, a little longer each time.
func pauseAfterRace(ctx context.Context, try int) {
	pause := min(5*time.Millisecond<<min(try, 8), time.Second)
	_ = kube.Sleep(ctx, pause/2+rand.N(pause)) // the next request tells that ctx has ended
}

// execute carries out one change.
func (a *Applier) execute(ctx context.Context, c Change) (Change, error) {
	planned, written := c.Action, false
	var repaired Change // the change whose patch did what no apply can do
	for try := 0; ; try++ {
		if c.execution == nil {
			if c.Action == Unchanged {
				c.Applied = c.Live
				if planned == Create || written {
					c.Action = planned // by an earlier request of ours, whose answer may have been lost
				}
			}
			return c, nil
		}
		if err := a.recordPriorState(ctx, c); err != nil {
			return c, err
		}
		// Later tries require only the UID where the decision allows that: what somebody writes all the time would
		// never be written.
		if try < maxAttempts/2 {
			c.execution.requireVersionOf(c.Live)
		}
		done, redecide, err := a.sendWrites(ctx, c)
		if err == nil && !redecide {
			if written && done.Action == Unchanged || planned == Recreate && done.Action == Create {
				done.Action = planned // in several tries
			}
			return done, nil
		}
		written = written || c.Deferral == nil // a stored write whose answer was lost is a conflict when it is repeated
		if err != nil && (!verify.WasModified(err, c.ID) || try == maxAttempts) {
			err = verify.Explain(c.object(), err)
			if t := c.execution.t; t != nil && t.progress.oldDeleted {
				err = fmt.Errorf("%w; the old object is deleted, and the new one doesn't exist", err)
			}
			return c, &ObjectError{ID: c.ID, Source: c.Source, Doing: doing(planned), Err: err}
		}
		if try > 2*maxAttempts {
			return c, &ObjectError{ID: c.ID, Source: c.Source, Doing: doing(planned), Err: errors.New("another client keeps changing it")}
		}
		if err != nil {
			pauseAfterRace(ctx, try)
		}
		if err == nil && c.execution.isRepair() {
			repaired = c
		}
		next, err := c.execution.redecide(ctx, c)
		if rejected, ok := errors.AsType[*Rejection](err); ok {
			return c, &ObjectError{ID: c.ID, Source: c.Source, Doing: doing(c.Action), Err: rejected.Err}
		}
		if err != nil {
			return c, err
		}
		if next.Action == Keep && next.execution == nil && c.execution.t != nil {
			next.Warning = "kept as it is: " + next.Reason // the plan didn't say so
		}
		c = next
		if len(c.Conflicts)+len(c.Fields) == 0 {
			c.Conflicts, c.Fields = repaired.Conflicts, repaired.Fields
		}
	}
}

func doing(action Action) string {
	switch action {
	case Create:
		return "creating"
	case Recreate:
		return "recreating"
	case Delete:
		return "deleting"
	case GiveBack:
		return "giving back"
	}
	return "updating"
}
