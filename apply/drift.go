package apply

import (
	"context"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/compare"
	"deployer/apply/ownership"
	"deployer/internal/kube"
)

// Origin is who is behind a difference between what a release last applied and
// what is there.
type Origin string

// The origins. What nobody owns, because it was removed, is taken for manual:
// controllers own what they write.
const (
	OriginManual        Origin = "manual"         // people: kubectl, consoles
	OriginFailedRelease Origin = "failed_release" // left by another revision of the release, which failed as a rule
	OriginOtherRelease  Origin = "other_release"  // another release, or Helm beside the release's records
	OriginDeleted       Origin = "deleted"        // the object is gone
	OriginController    Origin = "controller"     // autoscalers, operators, admission
)

// A Drift is how the cluster differs from what a release last applied.
type Drift struct {
	Objects   []DriftedObject // those that differ, by name
	Same      int             // objects that don't
	Estimated int             // of these, as far as it can be told without the server's dry run
	Warnings  []Warning
}

// DriftedObject is one object that isn't as it was applied.
type DriftedObject struct {
	ID     kube.ID
	Source string // template; empty when unknown
	State  DriftState
	Origin Origin // of the state; empty when only fields differ
	Reason string

	// Revision is the one that left an extra object.
	Revision int
	// Unverified says why the object could not be read, or the server not be
	// asked what the release's manifest comes to.
	Unverified string
	// Expected says that a deployment would leave the object as it is.
	Expected bool

	Live    *unstructured.Unstructured // nil when it is gone or can't be read
	Desired *unstructured.Unstructured // as it was applied; nil for what isn't the release's
	Fields  []DriftField
}

// DriftState is how an object differs.
type DriftState string

// The states.
const (
	DriftChanged   DriftState = "changed"  // some of its fields
	DriftMissing   DriftState = "missing"  // not in the cluster
	DriftDeleting  DriftState = "deleting" // being deleted
	DriftExtra     DriftState = "extra"    // in the cluster, and not of the deployed revision
	DriftTakenOver DriftState = "taken"    // belongs to another release, or is marked so
	DriftUnknown   DriftState = "unknown"  // may not be read
)

// A DriftField is one field that isn't as it was applied.
type DriftField struct {
	Path                string
	Desired, Live       any  // the values, plain JSON data
	HasDesired, HasLive bool // whether there are such values
	Origin              Origin
	Owner               ownership.Owner
	Revision            int  // that stated the live value; 0 for none
	Expected            bool // a deployment would leave it as it is
	Names               []string
}

// Drift compares the live objects with what a revision applied: of Request,
// Objects is its manifest, CRDs and Hooks what it has applied and run of these,
// and base is its number. It goes the way of Plan, with the server's dry run
// where that is permitted, and changes nothing. What the server or the policies
// would reject is no error here: it is compared locally.
func (a *Applier) Drift(ctx context.Context, req Request, base int) (*Drift, error) {
	d, err := a.beginInspection(ctx, req, base)
	if err != nil {
		return nil, err
	}
	if err := d.inspectAll(ctx); err != nil {
		return nil, err
	}
	d.addUnresolvable()
	if err := d.addExtras(ctx); err != nil {
		return nil, err
	}
	slices.SortStableFunc(d.out.Objects, func(a, b DriftedObject) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	for _, w := range d.warnings.sorted() {
		if w.ID == (kube.ID{}) { // of the manifest's own, its deployment has told
			d.out.Warnings = append(d.out.Warnings, w)
		}
	}
	return d.out, nil
}

// inspection is one comparison with what a revision has applied, under way.
type inspection struct {
	*planning
	deployedRevision int
	targets          []*target
	hooks            map[kube.ID]bool
	out              *Drift
}

// beginInspection begins a comparison with what a revision has applied: see Drift.
func (a *Applier) beginInspection(ctx context.Context, req Request, base int) (*inspection, error) {
	opts := a.opts
	opts.Gate, opts.AllowRecreate, opts.refuseNothing = GateBestEffort, true, true
	if opts.Conflicts == FailOnConflict {
		opts.Conflicts = TakeConflicts
	}
	ran := req.Hooks
	req.Fingerprints, req.Hooks = nil, nil // a fingerprint doesn't detect fields that others added
	p, crds, mains, _, err := New(a.cluster, a.owner, opts).prepare(ctx, req)
	if err != nil {
		return nil, err
	}
	d := &inspection{planning: p, deployedRevision: base, targets: append(crds, mains...), hooks: map[kube.ID]bool{}, out: &Drift{}}
	return d, d.addHooks(ctx, ran)
}

// addHooks adds what hooks have made. One whose name the server chose can't be
// found again.
func (d *inspection) addHooks(ctx context.Context, ran []kube.Manifest) error {
	rejected := d.resolver.rejected
	hooks, err := d.resolver.resolve(ctx, ran, false)
	d.resolver.rejected = rejected // what hooks lack is no matter
	for _, t := range hooks {
		if t.id.Name != "" && !d.hooks[t.id] && d.targetsByID[t.id] == nil {
			d.hooks[t.id] = true
			d.targets = append(d.targets, t)
		}
	}
	return err
}

func (d *inspection) inspectAll(ctx context.Context) error {
	targets := d.targets
	seen, err := d.observer.observe(ctx, targets)
	if err == nil {
		err = d.observer.readAll(ctx, targets, targets, seen)
	}
	if err != nil {
		return err
	}
	found := make([]DriftedObject, len(targets))
	err = d.a.each(ctx, len(targets), func(i int) error {
		t, s := targets[i], seen[targets[i].id]
		if s.full == nil && !s.absent && !s.forbidden { // not in a list of what has Helm's label
			var err error
			if s, err = d.observer.read(ctx, t); err != nil {
				return err
			}
		}
		var err error
		found[i], err = d.inspect(ctx, t, s)
		return err
	})
	if err != nil {
		return err
	}
	for i, o := range found {
		targets[i].decided = &Change{ID: o.ID, Action: Unchanged, Live: o.Live} // for extras to know which objects are these
		if d.hooks[o.ID] && (o.State == DriftMissing || o.State == DriftDeleting) {
			continue // hooks come and go
		}
		if o.State == DriftChanged && len(o.Fields) == 0 {
			d.out.Same++
			if o.Unverified != "" {
				d.out.Estimated++
			}
			continue
		}
		d.out.Objects = append(d.out.Objects, o)
	}
	return nil
}

// inspect compares one object.
func (d *inspection) inspect(ctx context.Context, t *target, s observation) (DriftedObject, error) {
	if t.fromCRDs && d.a.opts.CRDs == CreateCRDs && s.full != nil {
		return DriftedObject{ID: t.id, State: DriftChanged}, nil // whatever is in it is left
	}
	o, c, err := d.reapply(ctx, t, s)
	if err == nil && o.State == DriftChanged {
		o.Fields, err = d.driftFields(t, c)
	}
	return o, err
}

// reapply tells what becomes of an object when it is applied again; of one that can't
// be compared field by field, its state only.
func (d *inspection) reapply(ctx context.Context, t *target, s observation) (DriftedObject, Change, error) {
	o := d.stateOf(t, s)
	if o.State != DriftChanged {
		return o, Change{}, nil
	}
	c, err := d.predict(ctx, t, s.full)
	var rejected *Rejection
	if errors.As(err, &rejected) {
		o.State, o.Unverified = DriftUnknown, "the release's manifest can't be read by the server's schema: "+rejected.Err.Error()
		return o, c, nil
	}
	if err == nil {
		o.Live, o.Unverified = c.Live, c.Unverified
	}
	return o, c, err
}

// stateOf tells of an object as a whole; Changed where its fields have to be
// compared.
func (d *inspection) stateOf(t *target, s observation) DriftedObject {
	o := DriftedObject{ID: t.id, Source: t.source, State: DriftChanged, Live: s.full, Desired: t.obj}
	switch {
	case s.forbidden:
		o.State, o.Unverified = DriftUnknown, "this account may not read it"
	case s.full == nil && expires(t.obj):
		o.State, o.Origin, o.Expected, o.Reason = DriftMissing, OriginController, true, "it goes some time after it has finished"
	case s.full == nil:
		o.State, o.Origin, o.Reason = DriftMissing, OriginDeleted, "not in the cluster"
	case s.full.GetDeletionTimestamp() != nil:
		o.State, o.Origin, o.Reason = DriftDeleting, OriginDeleted, "is being deleted"
	default:
		if owner := ownerOf(s.full); !t.fromCRDs && owner != (Owner{}) && owner != d.a.owner {
			o.State, o.Origin, o.Reason = DriftTakenOver, OriginOtherRelease, "belongs to release "+owner.String()+" now"
		}
	}
	return o
}

// expires tells whether the cluster deletes an object when it has finished.
// https://kubernetes.io/docs/concepts/workloads/controllers/ttlafterfinished/
func expires(obj *unstructured.Unstructured) bool {
	_, found, err := unstructured.NestedFieldNoCopy(obj.Object, "spec", "ttlSecondsAfterFinished")
	return found && err == nil && kube.IDOf(obj).Kind == "Job"
}

// predict tells what applying the manifest again would come to: by the server's
// answer, or by our own reckoning where it has none or refuses.
func (d *inspection) predict(ctx context.Context, t *target, live *unstructured.Unstructured) (Change, error) {
	var rejected *Rejection
	want, err := d.normalise(ctx, t)
	if err != nil {
		return Change{}, err
	}
	c, err := d.update(ctx, t, want, live, false)
	switch {
	case errors.As(err, &rejected):
		c, err = d.estimateLocally(ctx, t, want, live)
		c.Unverified = "the server would not accept the release's manifest now: " + rejected.Err.Error()
		if _, immutable := rejected.Err.(*ImmutableError); immutable {
			c.Unverified = ""
		}
	case err == nil && (c.Action == Recreate || c.Result == nil):
		unverified := c.Unverified
		c, err = d.estimateLocally(ctx, t, want, live)
		c.Unverified = unverified
	}
	return c, err
}

// estimateLocally is predict without asking the server.
func (p *planning) estimateLocally(ctx context.Context, t *target, want, live *unstructured.Unstructured) (Change, error) {
	c := p.change(t, Update)
	c.Live, c.Desired = live, want
	cmp, err := p.compare(ctx, t, want.DeepCopy(), live)
	if err == nil {
		err = p.relinquishReplicas(ctx, t, cmp, &c)
	}
	if err == nil {
		cmp.relinquishClusterFilled(t)
		var policy ConflictPolicy
		if policy, err = p.policy(t); err == nil {
			_, err = p.decideConflicts(t, cmp, &c, policy) // nothing is refused where one only looks
		}
	}
	if err == nil {
		err = cmp.migrateAndPredict(false, p.a.opts.RevertManual, p.served(ctx, t))
	}
	if err != nil {
		return c, &ObjectError{ID: t.id, Source: t.source, Doing: "comparing", Err: err}
	}
	c.Desired, c.Result = cmp.desired, cmp.predicted
	diff, err := cmp.differences(c.Result)
	if err != nil {
		return c, &ObjectError{ID: t.id, Source: t.source, Doing: "comparing", Err: err}
	}
	c.Fields = compare.States{Before: live, After: c.Result, Desired: c.Desired, Managed: cmp.entries}.Fields(diff)
	return c, nil
}

// addUnresolvable adds objects whose manifest can't be resolved: their kind is gone,
// and they with it.
func (d *inspection) addUnresolvable() {
	for _, r := range d.resolver.rejected {
		o := DriftedObject{ID: r.ID, Source: r.Source, State: DriftMissing, Origin: OriginDeleted, Reason: r.Err.Error()}
		var unknown *kube.NoKindMatchError
		if !errors.As(r.Err, &unknown) {
			o.State, o.Origin, o.Unverified = DriftUnknown, "", r.Err.Error()
		}
		d.out.Objects = append(d.out.Objects, o)
	}
}

// addExtras adds what other revisions have left.
func (d *inspection) addExtras(ctx context.Context) error {
	left, err := (&pruner{planning: d.planning}).decideOrphans(ctx)
	if err != nil {
		return err
	}
	for _, c := range left {
		if c.Action != Delete && !c.RevisitNextRelease {
			continue // it is meant to stay, or belongs to somebody else by now
		}
		o := DriftedObject{ID: c.ID, Source: c.Source, State: DriftExtra, Origin: OriginFailedRelease, Reason: c.Reason, Live: c.Live, Expected: c.Action == Keep}
		if c.Live == nil {
			o.State, o.Origin, o.Unverified, o.Reason = DriftUnknown, "", c.Reason, ""
		}
		if history := d.history.objects[c.ID]; len(history) > 0 {
			o.Revision = history[len(history)-1].revision
		}
		d.out.Objects = append(d.out.Objects, o)
	}
	return nil
}
