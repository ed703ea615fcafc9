package apply

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/decide"
	"deployer/apply/verify"
	"deployer/internal/kube"
)

// Run carries out the changes of one list: Plan.CRDs, or a wave. onDone is called for
// each change that succeeds, unchanged and kept ones too, one after the other, with
// Applied set to the server's object; it may keep the pointer. When ctx ends no new
// request is started; Run returns when the last running one has ended. The changes in the
// slice are replaced by what was done, so that predictions can be freed. The error joins
// an *ObjectError for each failed change. Changes with a Deferral are decided first. If
// the server rejects some of them, the error is a late *RejectedError and nothing was
// carried out. At the end RedecideDeferred decides about what waited for these changes.
func (a *Applier) Run(ctx context.Context, changes []Change, onDone func(*Change)) error {
	if err := permitted(changes); err != nil {
		return err
	}
	if err := a.redecideDeferred(ctx, [][]Change{changes}, nil, true); err != nil {
		return err
	}
	p := a.planning
	unused := p.unused(changes)
	errs, ended := a.executeAll(ctx, changes, onDone)
	if ended != nil {
		return errors.Join(errors.Join(errs...), ended)
	}
	var used []Change
	for i, c := range changes {
		switch {
		case !c.ID.IsCRD() || errs[i] != nil || c.Action != decide.Create && c.Action != decide.Update:
		case unused[c.ID]:
			a.unawaited = append(a.unawaited, c)
		default:
			used = append(used, c)
		}
	}
	err := a.awaitKinds(ctx, used)
	for i, c := range changes {
		// Workloads behind a conversion webhook have to be ready, and not only there: the order of the waves sees to that.
		if p != nil && errs[i] == nil && err == nil && (c.ID.IsCRD() || c.ID.IsNamespace()) {
			p.prerequisites.markPresent(c.ID)
		}
	}
	if err := errors.Join(append(errs, err)...); err != nil || p == nil {
		return err
	}
	return a.RedecideDeferred(ctx)
}

// executeAll carries changes out side by side. errs has the error of each, nil for those that ended well;
// ended is why some weren't begun.
func (a *Applier) executeAll(ctx context.Context, changes []Change, onDone func(*Change)) (errs []error, ended error) {
	errs = make([]error, len(changes))
	p := a.planning
	if p == nil && slices.ContainsFunc(changes, Change.MayWrite) {
		return errs, errors.New("these changes are of another applier's plan")
	}
	var mu sync.Mutex
	ended = a.forEach(ctx, len(changes), func(i int) error {
		done, fromCRDs, planned := changes[i], changes[i].Contribution != nil, changes[i].ContributionToRecord()
		if !done.MayWrite() {
			done.Applied = done.whenUntouched()
		} else {
			r := changeRun{a: a, p: p, t: p.target(done.ID), planned: done.Action}
			var err error
			switch done, err = r.execute(ctx, changes[i]); {
			case err == nil:
			case p.leaveBehind(r.t, &changes[i], err), p.pruner.leaveDenied(&changes[i], err):
				done = changes[i]
			default:
				errs[i] = err
				return nil
			}
			fromCRDs = fromCRDs || r.t != nil && r.t.fromCRDs
			p.prerequisites.carriedOut(done.ID)
		}
		if fromCRDs || done.Contribution != nil {
			done.Contribution = done.contributionAfter(planned)
		}
		done.writes, done.orphan, done.Predicted, done.IsDone = nil, nil, nil, true
		mu.Lock()
		defer mu.Unlock()
		changes[i] = done
		onDone(&changes[i])
		return nil
	})
	return errs, ended
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

// A changeRun carries out one change.
type changeRun struct {
	a *Applier  // that writes
	p *planning // that decides again
	t *target   // nil for an orphan

	planned  decide.Action
	try      int    // from zero
	written  bool   // writes were sent, so that what they asked for may be there
	repaired Change // the change whose patch did what no apply can; the zero value when there was none

	refusedSince       time.Time // by admission; zero while it wasn't
	oldDeleted         bool      // the object that it replaces was deleted
	migrationRefusedAt string    // resourceVersion at which a policy refused to migrate the ownership of fields
}

// execute carries out a change, in as many tries as it takes: others may write the object between
// our read and our write, and some writes only prepare it.
func (r *changeRun) execute(ctx context.Context, c Change) (Change, error) {
	for ; c.MayWrite(); r.try++ {
		if err := r.recordPriorState(ctx, c); err != nil {
			return c, err
		}
		// Later tries require only the UID where the decision allows that: what somebody writes all the time would
		// never be written.
		if r.try < maxAttempts/2 {
			c.writes = boundTo(c.Live, c.writes)
		}
		done, redecide, err := r.send(ctx, c)
		if err == nil && !redecide {
			return r.asPlanned(done), nil
		}
		if err := r.giveUp(c, err); err != nil {
			return c, err
		}
		if err != nil {
			pauseAfterRace(ctx, r.try)
		}
		if c, err = r.redecide(ctx, c, err == nil); err != nil {
			return c, err
		}
	}
	c.Applied = c.whenUntouched()
	return r.asPlanned(c), nil
}

// whenUntouched returns the object of a change that takes no writes, as it is applied; nil for one that the release leaves.
func (c Change) whenUntouched() *unstructured.Unstructured {
	if c.Action == decide.Unchanged {
		return c.Live
	}
	return c.Applied
}

// asPlanned names what was done in several tries as it was planned.
func (r *changeRun) asPlanned(c Change) Change {
	if r.written && c.Action == decide.Unchanged || r.planned == decide.Recreate && c.Action == decide.Create {
		c.Action = r.planned
	}
	return c
}

// giveUp returns the error that ends the tries after err; nil if another one follows. err is nil after writes
// that ask for another decision.
func (r *changeRun) giveUp(c Change, err error) error {
	switch {
	case err != nil && r.mayBeAdmittedSoon(err):
		return nil
	case err != nil && (r.try >= maxAttempts || !verify.WasModified(err, c.ID)):
		err = verify.AsServerError(c.object(), err)
		if r.oldDeleted {
			err = fmt.Errorf("%w; the old object is deleted, and the new one doesn't exist", err)
		}
	case r.try > 2*maxAttempts:
		err = errors.New("another client keeps changing it")
	default:
		return nil
	}
	return &ObjectError{ID: c.ID, Source: c.Source, Doing: doing[r.planned], Err: err}
}

// mayBeAdmittedSoon reports whether a deletion is refused by admission that this run has changed, which the API server may
// not have heeded yet. No dry run has told about a deletion before.
func (r *changeRun) mayBeAdmittedSoon(err error) bool {
	if kind := verify.Read(err).Kind; r.t != nil || !r.p.changesJudges || kind != verify.Policy && kind != verify.WebhookSays {
		return false
	}
	if r.refusedSince.IsZero() {
		r.refusedSince = time.Now()
	}
	return time.Since(r.refusedSince) < AdmissionLag
}

// doing is what an error says was being done.
var doing = map[decide.Action]string{
	decide.Create: "creating", decide.Update: "updating", decide.Recreate: "recreating", decide.Delete: "deleting",
	decide.Keep: "updating", decide.GiveBack: "giving back", decide.Unchanged: "updating",
}
