package apply

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"deployer/apply/compare"
	"deployer/apply/decide"
	"deployer/apply/fields"
	"deployer/apply/ordering"
	"deployer/apply/provenance"
	"deployer/internal/annotation"
	"deployer/internal/kube"
)

// An Inspection compares a revision with the cluster: what would applying it again
// change? It decides as Plan does, with the server's dry run where that is permitted, but
// rejects nothing: what the server or the policies would refuse is estimated. It
// writes nothing. Package inspect makes reports of it.
type Inspection struct {
	p       *planning
	targets []*target
	ofHooks map[kube.ID]bool
}

// An Inspected is one object of a revision, with its declared, live and predicted state.
type Inspected struct {
	// Change is the decision if the revision were applied again. For an object that is
	// absent, forbidden or not ours, it has only ID, Source and Live.
	Change
	Declared *unstructured.Unstructured // as the revision states it, in its namespace
	FromCRDs bool                       // of crds/
	FromHook bool                       // of a hook that ran

	Forbidden bool  // no permission to read it, so that Live is nil
	Rejected  error // why the declared object is rejected, such as by the server's schema; usually nil

	ByFields *compare.Live    // Live by its schema, and who owns its fields: of what has Predicted
	History  []DeclaredObject // what the revisions of the Request say of it, oldest first

	target *target
}

// Owner is the release that the live object belongs to; empty for nobody, and where
// there is no live object.
func (o *Inspected) Owner() provenance.Owner {
	if o.Live == nil {
		return provenance.Owner{}
	}
	return provenance.OwnerOf(o.Live)
}

// Inspect starts an inspection. The Request's Objects are the manifest of the revision.
// Its CRDs and Hooks are those that the revision has applied and run.
func (a *Applier) Inspect(ctx context.Context, req Request) (*Inspection, error) {
	opts := a.opts
	opts.Gate = GateBestEffort // it doesn't ask what the account may do
	ran := req.Hooks
	req.Fingerprints, req.Hooks = nil, nil // a fingerprint doesn't detect fields that others added
	p, err := New(a.cluster, a.owner, opts).prepare(ctx, req)
	if err != nil {
		return nil, err
	}
	p.inspects = true
	i := &Inspection{p: p, targets: slices.Concat(p.crds, p.mains), ofHooks: map[kube.ID]bool{}}
	return i, i.addHooks(ctx, ran)
}

// addHooks adds the objects that hooks have created. One with a generated name can't be
// found again.
func (i *Inspection) addHooks(ctx context.Context, ran []kube.Manifest) error {
	rejected := i.p.rejected
	hooks, err := i.p.resolver.resolve(ctx, ran, false)
	i.p.rejected = rejected // rejected hooks are ignored
	for _, t := range hooks {
		if t.id.Name != "" && !i.ofHooks[t.id] && i.p.targetsByID[t.id] == nil {
			i.ofHooks[t.id] = true
			i.targets = append(i.targets, t)
		}
	}
	return err
}

// Rejected returns the objects that can't be read, usually because their kind isn't
// served.
func (i *Inspection) Rejected() []Rejection { return i.p.rejected }

// Warnings are, once all objects are inspected, those that belong to no object or are still true.
func (i *Inspection) Warnings() []Warning {
	// The others were shown when the objects were deployed.
	return slices.DeleteFunc(i.p.warnings.sorted(), func(w Warning) bool { return w.ID != (kube.ID{}) && !w.staysTrue })
}

// Release is the release that is inspected.
func (i *Inspection) Release() provenance.Owner { return i.p.a.owner }

// All inspects all objects, in as few requests as it takes.
func (i *Inspection) All(ctx context.Context) ([]*Inspected, error) {
	observed, err := i.p.observer.observe(ctx, i.targets)
	if err == nil {
		err = i.p.observer.readAll(ctx, i.targets, i.targets, observed)
	}
	if err != nil {
		return nil, err
	}
	out := make([]*Inspected, len(i.targets))
	err = i.p.a.forEach(ctx, len(out), func(n int) error {
		t, s := i.targets[n], observed[i.targets[n].id]
		var err error
		if s.full == nil && !s.absent && !s.forbidden { // not in a list of what has Helm's label
			s, err = i.p.observer.read(ctx, t)
		}
		if err == nil {
			out[n], err = i.inspect(ctx, t, s)
		}
		return err
	})
	return out, err
}

// Named returns the objects that a user's KIND/NAME or KIND/NAMESPACE/NAME refers to, and
// all objects.
func (i *Inspection) Named(ctx context.Context, text string) (named, all []kube.ID, err error) {
	object, ok := annotation.ParseObject(text)
	r := annotation.Dependency{Object: object, IsPattern: object.Namespace == ""} // in whichever namespace it is
	var kinds []kube.Mapping
	if ok {
		if kinds, err = i.p.resolver.kindsNamedBy(ctx, r); err != nil {
			return nil, nil, err
		}
	}
	for _, t := range i.targets {
		all = append(all, t.id)
		if ok && ordering.Matches(r, t.id, t.mapping.GVK, kinds, i.p.a.owner.Namespace) {
			named = append(named, t.id)
		}
	}
	return named, all, nil
}

// One inspects one of the objects that Named gives.
func (i *Inspection) One(ctx context.Context, id kube.ID) (*Inspected, error) {
	n := slices.IndexFunc(i.targets, func(t *target) bool { return t.id == id })
	if n < 0 {
		return nil, &ObjectError{ID: id, Doing: "looking for", Err: errors.New("the revision doesn't have it")}
	}
	s, err := i.p.observer.read(ctx, i.targets[n])
	if err != nil {
		return nil, err
	}
	return i.inspect(ctx, i.targets[n], s)
}

// inspect compares one object.
func (i *Inspection) inspect(ctx context.Context, t *target, s observation) (*Inspected, error) {
	o := &Inspected{
		Change: Change{ID: t.id, Source: t.source, Live: s.full}, Declared: t.obj, FromCRDs: t.fromCRDs, FromHook: i.ofHooks[t.id],
		Forbidden: s.forbidden, History: i.p.history.objects[t.id], target: t,
	}
	t.decided = &Change{ID: t.id, Action: decide.Unchanged, Live: s.full} // so that Orphans doesn't count it as an orphan
	owner := o.Owner()
	othersOwn := !t.fromCRDs && owner != (provenance.Owner{}) && owner != i.p.a.owner
	keptAsIs := t.fromCRDs && i.p.a.opts.CRDs.leavesExisting()
	if s.full == nil || s.full.GetDeletionTimestamp() != nil || othersOwn || keptAsIs {
		return o, nil
	}
	c, err := i.p.decideBy(ctx, t, s, func(t *target, f *facts) (Change, error) {
		if f.full == nil {
			return Change{}, t.reject(errors.New("it has been deleted meanwhile"))
		}
		c, err := i.p.decideUpdate(t, f, decide.Decision{})
		o.ByFields = f.update.value.live
		return c, err
	})
	if rejected, ok := errors.AsType[*Rejection](err); ok {
		o.Rejected = rejected.Err
		return o, nil
	}
	if err != nil {
		return nil, err
	}
	o.Change = c
	return o, nil
}

// FateOf says what becomes of a field of the object when the revision is applied again.
func (o *Inspected) FateOf(path fieldpath.Path) decide.FieldOutcome {
	for _, c := range o.Conflicts {
		if at := c.FieldPath; at != nil && len(at) <= len(path) && at.Equals(path[:len(at)]) {
			return c.Outcome
		}
	}
	is, has := fields.Value(o.Live.Object, path)
	will, stays := fields.Value(o.Predicted.Object, path)
	isApplied := fields.Has(o.Desired.Object, path)
	switch {
	case has && !stays:
		return decide.OutcomeRemoved
	case has != stays || !fields.Equal(is, will):
		return decide.OutcomeSet
	case isApplied:
		return decide.OutcomeKept
	case fields.Has(o.Declared.Object, path):
		return decide.OutcomeYielded
	}
	return decide.OutcomeIgnored
}

// An OrphanChange is an object of another revision, and what applying the inspected
// revision would do to it.
type OrphanChange struct {
	Change
	Revision int // the last that has it; 0 when only a hook had it
}

// Orphans are the objects that other revisions have left. It is to be called after All.
func (i *Inspection) Orphans(ctx context.Context) ([]OrphanChange, error) {
	changes, err := i.p.pruner.decideOrphans(ctx)
	if err == nil {
		changes, err = i.p.pruner.inDeletionOrder(ctx, changes)
	}
	out := make([]OrphanChange, len(changes))
	for n, c := range changes {
		out[n] = OrphanChange{c, i.p.history.latestDeclared(c.ID).Revision}
	}
	return out, err
}

// DeclaredIn returns what each revision declares of an object, converted to the API version
// in which it is compared. Object is empty if a revision doesn't have the object, or if its
// manifest doesn't fit that version.
func (i *Inspection) DeclaredIn(ctx context.Context, o *Inspected, revisions []Revision) ([]DeclaredObject, error) {
	history, err := i.p.resolver.indexRevisions(ctx, revisions)
	if err != nil {
		return nil, err
	}
	declared := history.objects[o.ID]
	read := i.p.declaredFieldsOf(ctx, o.target, o.ByFields.Converter, declared)
	out, at := make([]DeclaredObject, len(revisions)), map[int]int{}
	for n, r := range revisions {
		out[n], at[r.Revision] = DeclaredObject{Revision: r.Revision, Object: &unstructured.Unstructured{}}, n
	}
	for _, s := range declared {
		out[at[s.Revision]].Source = s.Source
	}
	for _, d := range read {
		out[at[d.Revision]].Object.Object = d.Object
	}
	return out, nil
}

// Leaves returns the leaf fields of the live and of the predicted object.
func (o *Inspected) Leaves() (*fieldpath.Set, error) {
	predicted, err := compare.FieldSet(o.ByFields.Converter, o.Predicted)
	if err != nil {
		return nil, err
	}
	return o.ByFields.Fields.Union(predicted).Leaves(), nil
}
