package apply

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/decide"
	"deployer/apply/verify"
	"deployer/internal/kube"
)

// PlanAgain makes a plan again, in place, from what is in the cluster now: after hooks have run, and whatever else may
// have changed objects whose turn is still to come. What was carried out stays as it is: the CRDs, the hooks that run
// first, and the first done waves. What the plan has as the release's is so still, even if a hook has made it anew without
// ownership, and so is what wasn't there when the plan was made. The request is that of Plan. It changes nothing in the
// cluster. The error is like that of Plan, but late.
func (a *Applier) PlanAgain(ctx context.Context, req Request, plan *Plan, done int) error {
	settled := map[kube.ID]*Change{}
	for _, list := range plan.lists() {
		for i := range list {
			if list[i].IsDone {
				settled[list[i].ID] = &list[i]
			}
		}
	}
	a.cluster.ForgetKinds()
	again, err := a.makePlan(ctx, req, settled, a.planning.oursAfter(plan, done))
	if err == nil {
		err = again.CheckPermissions()
	}
	if rejected, ok := errors.AsType[*RejectedError](err); ok {
		if rejected.When = AfterHooks; done > 0 {
			rejected.When = AfterChanges
		}
	}
	if err != nil {
		return err
	}
	for _, w := range again.Warnings {
		if !slices.Contains(plan.Warnings, w) {
			plan.Warnings = append(plan.Warnings, w)
			if a.opts.Warn != nil {
				a.opts.Warn(w.String())
			}
		}
	}
	switch {
	case done == 0:
		plan.PruneFirst = again.PruneFirst
	case len(again.Waves) > 0: // it has come since
		again.Waves[0].PruneFirst = append(again.PruneFirst, again.Waves[0].PruneFirst...)
	}
	plan.Waves = slices.Concat(plan.Waves[:done], again.Waves)
	plan.Prune, plan.PruneLast, plan.Hooks = again.Prune, again.PruneLast, slices.Concat(plan.Hooks[:req.PreHooks], again.Hooks)
	a.plan = plan
	return nil
}

// oursAfter are the objects after the first done waves of its plan that are the release's, and those that weren't there: whoever
// has made one meanwhile without ownership, a hook most likely, has made it for the release. p is nil when its plan writes nothing.
func (p *planning) oursAfter(plan *Plan, done int) map[kube.ID]bool {
	out := map[kube.ID]bool{}
	rest := Plan{Waves: plan.Waves[done:], PruneFirst: plan.PruneFirst, Prune: plan.Prune, PruneLast: plan.PruneLast}
	for c := range rest.Changes() {
		switch c.Action {
		case decide.Create:
			t := p.target(c.ID)
			out[c.ID] = t != nil && (t.progress.wasAbsent || p.prerequisites.isNew(t))
		case decide.Unchanged, decide.Update, decide.Recreate, decide.Delete:
			out[c.ID] = c.Live != nil && !c.Provenance.MustBeGivenBack()
		}
	}
	return out
}

// isAgain reports whether the plan is made again.
func (p *planning) isAgain() bool { return p.settled != nil }

// unsettled returns the targets that this run hasn't dealt with, and notes what became of the others.
func (p *planning) unsettled(targets []*target) []*target {
	return slices.DeleteFunc(slices.Clone(targets), func(t *target) bool {
		c := p.settled[t.id]
		if c != nil {
			t.decided = c
		}
		return c != nil
	})
}

// Vanished returns the objects of changes that were carried out and that aren't in the cluster any more. One that the account may
// not read counts as there.
func (a *Applier) Vanished(ctx context.Context, changes []*Change) ([]kube.ID, error) {
	list := make([]sought, len(changes))
	for i, c := range changes {
		m, _, err := a.stillServed(ctx, c.Applied.GroupVersionKind())
		if err != nil {
			return nil, &ObjectError{ID: c.ID, Source: c.Source, Doing: "looking once more at", Err: err}
		}
		list[i] = sought{id: c.ID, source: c.Source, mapping: m}
	}
	seen, err := (&finder{a: a}).find(ctx, list, false)
	if err != nil {
		return nil, err
	}
	var gone []kube.ID
	for i, s := range seen {
		if s.meta == nil && !s.forbidden {
			gone = append(gone, changes[i].ID)
		}
	}
	return gone, nil
}

// RedecideDeferred decides again, in place, about the deferred changes of the last plan whose prerequisites are all present, also
// about hooks. Run and Prune do it when they are done, so that all rejections are known before the first workload changes; call it
// when the new namespaces exist. Other changes stay as they are. It changes nothing in the cluster. The error is like that of Plan,
// but late.
func (a *Applier) RedecideDeferred(ctx context.Context) error {
	return a.redecideDeferred(ctx, a.plan.lists(), a.plan.Hooks, false)
}

// redecideDeferred decides again, in place, about the deferred changes of the plan that its planning stands for whose
// prerequisites are present; if itsTurn is set, about all of them, because their turn has come. A
// change that is rejected stays as it is. Unless the gate is strict, that is no error: the object is
// tried when its turn comes. Nor is a kind that isn't served before the object's turn.
func (a *Applier) redecideDeferred(ctx context.Context, lists [][]Change, hooks []Change, itsTurn bool) error {
	p := a.planning
	if p == nil {
		return nil // everything is decided
	}
	p.prerequisites.markPresent(namespaceIDs(p.req.NewNamespaces)...) // made before the first change
	var due []*Change
	var targets []*target
	add := func(t *target, c *Change) {
		if c.Deferral == nil || t.isHook && c.Deferral.waitsFor(t.definition()) { // webhooks of its kind may come with the release, too: its own turn tells
			return
		}
		if itsTurn {
			t.markPrerequisitesPresent(p.prerequisites)
		}
		if itsTurn || len(c.Deferral.Until) > 0 && !p.prerequisites.anyMissing(c.Deferral.Until...) {
			due, targets = append(due, c), append(targets, t)
		}
	}
	for _, list := range lists {
		for i := range list {
			if t := p.target(list[i].ID); t != nil {
				add(t, &list[i])
			}
		}
	}
	ran := len(hooks) - len(p.hooks) // before the plan was made again
	for i, t := range p.hooks {
		if ran >= 0 {
			add(t, &hooks[ran+i])
		}
	}
	if len(due) == 0 {
		return nil
	}
	if err := p.definitions.readGenerations(ctx, targets); err != nil {
		return err
	}
	if err := p.decideUntilAdmitted(ctx, targets); err != nil {
		return err
	}
	var bad []Rejection
	for i, c := range due {
		t := targets[i]
		err := t.rejectedOrDenied()
		if t.rejected == nil {
			*c, t.decided = *t.decided, nil
		}
		if err != nil && !p.leaveBehind(t, c, err) && (itsTurn || !errors.As(err, new(*kube.NoKindMatchError))) {
			bad = append(bad, *t.reject(err))
		}
	}
	if len(bad) > 0 && a.opts.Gate == GateStrict {
		return &RejectedError{Rejections: sorted(bad), When: AfterChanges}
	}
	return nil
}

// AdmissionLag is how long the API server may take to heed an object that decides what it admits: most by a watch, policies
// a second later, and a ResourceQuota when a controller has counted.
const AdmissionLag = 10 * time.Second

// decideUntilAdmitted decides about deferred targets, about those that waited for what admission reads until they are admitted, or
// the API server has had the time to heed that.
func (p *planning) decideUntilAdmitted(ctx context.Context, targets []*target) error {
	began := time.Now()
	for pause := firstPause; ; pause = min(2*pause, time.Second) {
		p.permissions.asked.forget()
		if err := p.decideEach(ctx, targets, p.redecideTarget); err != nil {
			return err
		}
		targets = slices.DeleteFunc(slices.Clone(targets), func(t *target) bool {
			return t.rejectedOrDenied() == nil || !t.waits.deferral.awaitsAdmission()
		})
		if len(targets) == 0 || time.Since(began) > AdmissionLag && !p.isSettling(ctx, targets) || time.Since(began) > p.a.opts.RetryTimeout {
			return nil
		}
		if err := kube.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// isSettling reports whether a controller hasn't dealt yet with a ResourceQuota or policy that a target waits for.
func (p *planning) isSettling(ctx context.Context, targets []*target) bool {
	for _, t := range targets {
		if t.rejected != nil && verify.Read(t.rejected).Detail == verify.Uncounted {
			return true
		}
		for _, id := range t.waits.deferral.Until {
			quota := p.targetsByID[id]
			if quota == nil || id.Group != "" || id.Kind != "ResourceQuota" {
				continue
			}
			live, err := p.a.get(ctx, quota.mapping, id)
			hard, _, _ := unstructured.NestedMap(objectOf(live), "spec", "hard")
			counted, _, _ := unstructured.NestedMap(objectOf(live), "status", "hard")
			if err == nil && live != nil && !reflect.DeepEqual(hard, counted) {
				return true
			}
		}
	}
	return false
}

// redecideTarget decides again about a deferred target whose prerequisites are present. An object whose kind
// or namespace is new isn't read: a dry run of creating it fails if somebody has made it since. A list
// wouldn't do: the API server refuses lists of a new kind for about a second.
func (p *planning) redecideTarget(ctx context.Context, t *target) (Change, error) {
	if err := p.resolver.refresh(ctx, t); err != nil {
		return Change{}, err
	}
	if t.isHook || p.a.opts.Gate != GateOff && p.prerequisites.isNew(t) {
		return p.decide(ctx, t, observation{})
	}
	return p.lookAndDecide(ctx, t)
}

// redecide decides again about a change after a try. sent says that its writes were made.
func (r *changeRun) redecide(ctx context.Context, c Change, sent bool) (Change, error) {
	r.written = r.written || c.Deferral == nil // a stored write whose answer was lost is a conflict when it is repeated
	if sent && len(c.writes) > 0 && c.writes[0].verb == patchObject {
		r.repaired = c
	}
	next, err := r.decideNow(ctx, c)
	if rejected, ok := errors.AsType[*Rejection](err); ok {
		return c, &ObjectError{ID: c.ID, Source: c.Source, Doing: doing[c.Action], Err: rejected.Err}
	}
	if err != nil {
		return c, err
	}
	if next.Action == decide.Keep && !next.MayWrite() && r.t != nil {
		next.Warning = "kept as it is: " + next.Reason // the plan didn't say so
	}
	if len(next.Conflicts)+len(next.Fields) == 0 {
		next.Conflicts, next.Fields = r.repaired.Conflicts, r.repaired.Fields
	}
	return next, nil
}

// decideNow decides again about a change whose turn has come.
func (r *changeRun) decideNow(ctx context.Context, c Change) (Change, error) {
	if r.t == nil {
		return r.p.pruner.redecideOrphan(ctx, c)
	}
	r.t.markPrerequisitesPresent(r.p.prerequisites)
	if err := r.p.resolver.refresh(ctx, r.t); err != nil {
		return c, err
	}
	if err := r.p.definitions.readGenerations(ctx, []*target{r.t}); err != nil {
		return c, err
	}
	return r.p.lookAndDecide(ctx, r.t)
}

// redecideOrphan decides again about an orphan that has changed since it was decided.
func (p *pruner) redecideOrphan(ctx context.Context, c Change) (Change, error) {
	meta, err := p.a.getMeta(ctx, p.mappingOf(ctx, c), c.ID)
	if err != nil {
		return c, &ObjectError{ID: c.ID, Source: c.Source, Doing: "reading", Err: err}
	}
	if meta == nil {
		c.writes = nil // gone
		return c, nil
	}
	return p.decideOrphanNow(ctx, c, meta), nil
}

// decideOrphanNow decides again about an orphan by what has its name now. What was made without ownership since the plan is
// somebody's own.
func (p *pruner) decideOrphanNow(ctx context.Context, c Change, meta *metav1.PartialObjectMetadata) Change {
	o := *c.orphan
	o.mapping, o.found = p.mappingOf(ctx, c), meta
	o.OnRecord = o.OnRecord && meta.UID == c.Live.GetUID()
	return p.decideOrphan(&o)
}
