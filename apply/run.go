package apply

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"deployer/apply/verify"
	"deployer/internal/kube"
)

// Run carries out the changes of one list: Plan.CRDs, a wave, or Plan.Prune. onDone is
// called for each change that succeeds, unchanged and kept ones too, one after the other,
// with Applied set to the server's object. When ctx ends no new request is started; Run
// returns when the last running one has ended. The changes in the slice are replaced by
// what was done, so that predictions can be freed. The error joins an *ObjectError for
// each failed change. Changes with a Deferral are decided first. If the server rejects
// some of them, the error is a late *RejectedError and nothing was carried out.
func (a *Applier) Run(ctx context.Context, changes []Change, onDone func(Change)) error {
	if err := permitted(changes); err != nil {
		return err
	}
	if err := a.redecideDeferred(ctx, changes, true); err != nil {
		return err
	}
	if len(changes) > 0 && changes[0].removes() {
		return a.delete(ctx, changes, onDone)
	}
	awaited := make([]*prerequisites, len(changes))
	for i, c := range changes {
		awaited[i] = c.prerequisiteOf
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

// RedecideDeferred decides again, in place, about the deferred changes of p whose
// prerequisites are all present. Run does the same for the changes that it is given.
// Calling this when the new namespaces, the CRDs and the other prerequisites exist
// reports all rejections before the first workload changes. Other changes stay as they
// are. It changes nothing in the cluster. The error is like that of Plan, but late.
func (a *Applier) RedecideDeferred(ctx context.Context, p *Plan) error {
	var all []Change
	for _, wave := range p.Waves {
		all = append(all, wave.Changes...)
	}
	var bad []Rejection
	err := a.redecideDeferred(ctx, all, false)
	if rejected := (*RejectedError)(nil); errors.As(err, &rejected) {
		for _, r := range rejected.Rejections {
			if unknown := (*kube.NoKindMatchError)(nil); !errors.As(r.Err, &unknown) {
				bad = append(bad, r)
			}
		}
	} else if err != nil {
		return err
	}
	i := 0
	for _, wave := range p.Waves {
		i += copy(wave.Changes, all[i:])
	}
	if len(bad) > 0 {
		return &RejectedError{Rejections: bad, Late: true}
	}
	return nil
}

// redecideDeferred decides again, in place, about deferred changes. now says that their
// turn has come: their prerequisites were made, and an API server that doesn't know them
// yet only lags behind. Unless the gate is strict, rejections are ignored here and met
// when the object is applied.
func (a *Applier) redecideDeferred(ctx context.Context, changes []Change, now bool) error {
	var open []int
	for i, c := range changes {
		if c.Deferral == nil || c.execution == nil {
			continue
		}
		c.execution.p.prerequisites.markPresent(namespaceIDs(c.execution.p.req.NewNamespaces)...) // made before the first change
		if now || !c.execution.p.prerequisites.anyMissing(c.Deferral.Until...) {
			open = append(open, i)
		}
	}
	if err := prepareRedecisions(ctx, changes, open, now); err != nil {
		return err
	}
	rejections := make([]Rejection, len(open))
	err := a.forEach(ctx, len(open), func(i int) error {
		c := &changes[open[i]]
		next, err := c.execution.redecideDeferred(ctx, *c, now)
		if rejected := (*Rejection)(nil); errors.As(err, &rejected) {
			rejections[i] = *rejected
			return nil
		}
		if err == nil {
			*c = next
			if next.denied != nil {
				rejections[i] = Rejection{ID: next.ID, Source: next.Source, Err: next.denied}
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	bad := slices.DeleteFunc(rejections, func(r Rejection) bool { return r.Err == nil })
	if len(bad) > 0 && a.opts.Gate == GateStrict {
		return &RejectedError{Rejections: bad, Late: true}
	}
	return nil
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
		if err := a.announce(ctx, c); err != nil {
			return c, err
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
			return c, &ObjectError{ID: c.ID, Source: c.Source, Doing: doing(planned), Err: verify.Explain(c.object(), err)}
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
		next, err := c.execution.redecide(ctx, c, true)
		if rejected := (*Rejection)(nil); errors.As(err, &rejected) {
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

// redecide decides again about a change. now says that its turn has come and all its
// prerequisites are present.
func (e *execution) redecide(ctx context.Context, c Change, now bool) (Change, error) {
	if e.t == nil {
		return e.pruner.redecide(ctx, c)
	}
	if err := e.p.prepareRedecision(ctx, e.t, now); err != nil {
		return Change{}, err
	}
	if err := e.p.definitions.readGenerations(ctx, []*target{e.t}); err != nil {
		return Change{}, err
	}
	return e.p.redecide(ctx, e.t)
}

// refreshMapping looks up a kind again whose CRD has been written in the meantime.
func (p *planning) refreshMapping(ctx context.Context, t *target) error {
	mapping, err := p.a.cluster.Mapping(ctx, t.mapping.GVK, false)
	var unknown *kube.NoKindMatchError
	if errors.As(err, &unknown) {
		p.a.cluster.ForgetKinds()
		mapping, err = p.a.cluster.Mapping(ctx, t.mapping.GVK, false)
	}
	if errors.As(err, &unknown) {
		return &Rejection{ID: t.id, Source: t.source, Err: unknown}
	}
	if err != nil {
		return &ObjectError{ID: t.id, Source: t.source, Doing: "looking for the kind of", Err: err}
	}
	t.mapping = mapping
	return nil
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
