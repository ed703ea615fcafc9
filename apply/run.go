package apply

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"deployer/apply/ownership"
	"deployer/internal/kube"
)

// Run carries out the changes of one list: Plan.CRDs, a wave, or Plan.Prune.
// did hears of each change, unchanged and kept ones too, in turn and never
// concurrently, with Result set to the server's object. When ctx ends no new
// request is begun; Run returns when the last one under way has ended. In
// changes, what was done takes the place of what was planned: predictions are as
// large as what comes of them. The error joins an *ObjectError for each change
// that failed; did is not called for those. Changes that couldn't be planned yet
// are planned first, and if the server rejects some the error is a late
// *RejectedError and none was carried out.
func (a *Applier) Run(ctx context.Context, changes []Change, did func(Change)) error {
	if err := permitted(changes); err != nil {
		return err
	}
	if err := a.recheck(ctx, changes, true); err != nil {
		return err
	}
	if len(changes) > 0 && changes[0].removes() {
		return a.delete(ctx, changes, did)
	}
	waited := waitedFor(changes)
	errs := a.carryOut(ctx, changes, did)
	err := a.awaitKinds(ctx, definitionsIn(changes, errs))
	for i, arrivals := range waited {
		if errs[i] == nil && err == nil {
			arrivals.arrive(changes[i].ID)
		}
	}
	return errors.Join(errors.Join(errs...), err)
}

// waitedFor are those of changes that others wait for.
func waitedFor(changes []Change) map[int]*arrivals {
	out := map[int]*arrivals{}
	for i, c := range changes {
		if c.waited != nil {
			out[i] = c.waited
		}
	}
	return out
}

// executeOrUndo carries changes out side by side. Each has its error, nil for those
// that ended well; the last one is that of the whole.
func (a *Applier) carryOut(ctx context.Context, changes []Change, did func(Change)) []error {
	errs := make([]error, len(changes)+1)
	var mu sync.Mutex
	errs[len(changes)] = a.each(ctx, len(changes), func(i int) error {
		done, err := a.execute(ctx, changes[i])
		if err != nil {
			errs[i] = err
			return nil
		}
		if done.was != nil || done.step != nil && done.step.t != nil && done.step.t.foreign {
			done.Brought = done.brought()
		}
		done.step = nil // and with the last one goes what planning was made of
		mu.Lock()
		defer mu.Unlock()
		changes[i] = done
		did(done)
		return nil
	})
	return errs
}

// Recheck plans again, in place, those changes of p with a Deferral for which all
// that they wait for is there by now. Run does the same for the changes it is
// given; calling Recheck when the new namespaces, the CRDs and what else others
// need have been made, makes all rejections known before the first workload
// changes. Changes whose time hasn't come stay as they are. It changes nothing in
// the cluster. The error is as that of Plan, but late.
func (a *Applier) Recheck(ctx context.Context, p *Plan) error {
	var all []Change
	for _, wave := range p.Waves {
		all = append(all, wave.Changes...)
	}
	var bad []Rejection
	err := a.recheck(ctx, all, false)
	if rejected := (*RejectedError)(nil); errors.As(err, &rejected) {
		for _, r := range rejected.Rejections {
			if unknown := (*kube.NoKindError)(nil); !errors.As(r.Err, &unknown) {
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

// recheck plans again, in place, the changes whose planning was put off. now
// says that their time has come: what they need has been made, and not finding
// it is for some API servers to catch up. Without a strict gate, rejections are
// left to be met when the object is applied.
func (a *Applier) recheck(ctx context.Context, changes []Change, now bool) error {
	var open []int
	for i, c := range changes {
		if c.Deferral == nil || c.step == nil {
			continue
		}
		c.step.p.begun()
		if now || !c.step.p.arrivals.missing(c.Deferral.Until...) {
			open = append(open, i)
		}
	}
	rejections := make([]Rejection, len(open))
	err := a.each(ctx, len(open), func(i int) error {
		c := &changes[open[i]]
		next, err := c.step.again(ctx, now)
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
	var bad []Rejection
	for _, r := range rejections {
		if r.Err != nil {
			bad = append(bad, r)
		}
	}
	if len(bad) > 0 && a.opts.Gate == GateStrict {
		return &RejectedError{Rejections: bad, Late: true}
	}
	return nil
}

// again plans a target anew, from the live object.
func (s *step) again(ctx context.Context, now bool) (Change, error) {
	p, t := s.p, s.t
	if now {
		t.arrived(p.arrivals)
	}
	if t.deferral.waitsFor(t.definition()) {
		mapping, err := p.a.cluster.Mapping(ctx, t.mapping.GVK, false)
		var unknown *kube.NoKindError
		if errors.As(err, &unknown) {
			p.a.cluster.ForgetKinds()
			mapping, err = p.a.cluster.Mapping(ctx, t.mapping.GVK, false)
		}
		if errors.As(err, &unknown) {
			return Change{}, &Rejection{ID: t.id, Source: t.source, Err: unknown}
		}
		if err != nil {
			return Change{}, &ObjectError{ID: t.id, Source: t.source, Doing: "looking for the kind of", Err: err}
		}
		t.mapping = mapping
	}
	if err := p.lookAtKinds(ctx, []*target{t}); err != nil {
		return Change{}, err
	}
	found, err := p.read(ctx, t)
	if err != nil {
		return Change{}, err
	}
	return p.decide(ctx, t, found)
}

// mostTries is how often an object is planned anew because somebody else wrote
// it between our reading and our writing: a dozen times in a row while a
// controller follows pods becoming ready. With the pauses of yieldTo it comes to
// a quarter of a minute.
const mostTries = 20

// yieldTo waits after a lost race, a little longer each time.
func yieldTo(ctx context.Context, try int) {
	pause := min(5*time.Millisecond<<min(try, 8), time.Second)
	select {
	case <-ctx.Done():
	case <-time.After(pause/2 + rand.N(pause)):
	}
}

// execute carries out one change.
func (a *Applier) execute(ctx context.Context, c Change) (Change, error) {
	planned, written := c.Action, false
	var repaired Change // what it came to when what no apply can do was written
	for try := 0; ; try++ {
		if c.step == nil {
			if c.Action == None {
				c.Result = c.Live
				if planned == Create || written {
					c.Action = planned // by an earlier request of ours, whose answer may have been lost
				}
			}
			return c, nil
		}
		if err := a.announce(ctx, c); err != nil {
			return c, err
		}
		done, again, err := a.once(ctx, c)
		if err == nil && !again {
			if written && done.Action == None || planned == Recreate && done.Action == Create {
				done.Action = planned // in several tries
			}
			return done, nil
		}
		written = written || c.Deferral == nil // what was stored, and its answer lost, is a conflict when it is tried again
		if err != nil && (!moved(err, c.ID) || try == mostTries) {
			return c, &ObjectError{ID: c.ID, Source: c.Source, Doing: doing(planned), Err: explain(c.object(), err)}
		}
		if try > 2*mostTries {
			return c, &ObjectError{ID: c.ID, Source: c.Source, Doing: doing(planned), Err: errors.New("somebody else keeps changing it")}
		}
		if err != nil {
			yieldTo(ctx, try)
		}
		if err == nil && len(c.step.repair) > 0 {
			repaired = c
		}
		if c, err = a.replan(ctx, c); err != nil {
			return c, err
		}
		if len(c.Conflicts)+len(c.Removed) == 0 {
			c.Conflicts, c.Removed = repaired.Conflicts, repaired.Removed
		}
	}
}

// moved says that a request failed because the object isn't any more what the
// decision was about: somebody has changed, made or deleted it.
func moved(err error, id kube.ID) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || vanished(err, id)
}

// replan decides anew about an object that isn't any more what it was.
func (a *Applier) replan(ctx context.Context, c Change) (Change, error) {
	s := c.step
	if s.cand != nil && s.t == nil {
		meta, err := a.getMeta(ctx, s.cand.mapping, c.ID)
		if err != nil {
			return c, &ObjectError{ID: c.ID, Source: c.Source, Doing: "reading", Err: err}
		}
		if meta == nil {
			c.step = nil
			return c, nil
		}
		return s.p.judge(*s.cand, meta), nil
	}
	next, err := s.again(ctx, true)
	if next.Action == Keep {
		next.Warning = "kept as it is: " + next.Reason // the plan didn't say so
	}
	if rejected := (*Rejection)(nil); errors.As(err, &rejected) {
		return c, &ObjectError{ID: c.ID, Source: c.Source, Doing: doing(c.Action), Err: rejected.Err}
	}
	return next, err
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

// once makes the requests of a change. again asks for planning anew.
func (a *Applier) once(ctx context.Context, c Change) (done Change, again bool, err error) {
	s := c.step
	if c.Deferral != nil {
		return c, true, nil
	}
	if s.cand != nil && c.Action == GiveBack {
		return a.giveBack(ctx, c)
	}
	if s.cand != nil {
		return c, false, a.remove(ctx, s.cand.mapping, c.ID, s.guard, a.opts.Propagation)
	}
	// The server warns again of what it has warned of in the dry run.
	ctx = kube.WithWarnings(ctx, func(text string) bool { return s.p.told(s.t, text) })
	if s.gone != "" {
		if err := a.makeRoom(ctx, c); err != nil {
			return c, false, err
		}
	}
	if len(s.repair) > 0 {
		_, err := a.edit(ctx, s.t, c.Live.GetResourceVersion(), s.repair, do)
		return c, true, err
	}
	if s.fold != nil {
		folded, refused, err := a.takeOver(ctx, c)
		if err != nil || refused && (!s.apply || s.t.denied == c.Live.GetResourceVersion()) {
			return folded, false, err
		}
		c, s = folded, folded.step
		if refused {
			// A policy judges the object as it is. When it is what the chart says,
			// the policy may let us have the rest, once more.
			c.Result, err = a.apply(ctx, s.t, c.Want, guard{uid: s.guard.uid}, do)
			if err == nil {
				s.t.denied = c.Result.GetResourceVersion()
			}
			return c, err == nil, err
		}
	}
	predicted := c.Result
	switch {
	case s.put != nil:
		c.Result, err = a.put(ctx, s.t, s.put, do)
	case s.apply && s.guard == absent():
		c.Result, err = a.bring(ctx, s.t, c.Want, do)
	case s.apply:
		c.Result, err = a.apply(ctx, s.t, c.Want, s.guard, do)
	}
	if s.apply && tooLarge(err) {
		c, err = a.putLarge(ctx, c, predicted, err)
	}
	return c, false, err
}

// makeRoom deletes an object that is to be recreated, and waits for it to go.
func (a *Applier) makeRoom(ctx context.Context, c Change) error {
	s := c.step
	if c.Action == Recreate {
		if err := a.remove(ctx, s.t.mapping, c.ID, guard{uid: c.Live.GetUID()}, propagation(c.ID)); err != nil {
			return err
		}
	}
	return a.awaitGone(ctx, s.t.mapping, c.ID, s.gone)
}

// takeOver writes managedFields, and nothing else of the object. Its second
// result says that a policy wouldn't have it.
func (a *Applier) takeOver(ctx context.Context, c Change) (Change, bool, error) {
	s := c.step
	list, err := ownership.Encode(s.fold)
	if err != nil {
		return c, false, err
	}
	ops := []operation{{"add", "/metadata/managedFields", list}}
	if _, ok := c.Live.GetAnnotations()[kube.LastAppliedAnnotation]; ok && tookFrom(c.TakenFrom, "kubectl-client-side-apply") {
		// Left, it would make a later kubectl apply remove fields of ours.
		ops = append(ops, operation{Op: "remove", Path: "/metadata/annotations/" + pointer.Replace(kube.LastAppliedAnnotation)})
	}
	result, err := a.edit(ctx, s.t, c.Live.GetResourceVersion(), ops, do)
	switch {
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
		c.Result = c.Live
		c.Reason = "its fields stay with their former managers: " + explain(c.object(), err).Error()
		return c, true, nil
	case err != nil:
		return c, false, err
	}
	c.Result = result
	next := *s
	next.guard.rv = result.GetResourceVersion()
	c.step = &next
	return c, false, nil
}
