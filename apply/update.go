package apply

import (
	"context"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"deployer/apply/compare"
	"deployer/apply/fields"
	"deployer/apply/ownership"
	"deployer/apply/verify"
	"deployer/internal/kube"
)

// update decides about an existing object that is ours or is being adopted.
func (p *planning) update(ctx context.Context, t *target, desired, live *unstructured.Unstructured, adopting bool) (Change, error) {
	if t.fullReplace.withoutDuplicates == nil && storedWithoutManagedFields(live) {
		t.fullReplace.withoutDuplicates, t.fullReplace.reason = desired, tooLargeForManagedFields
		p.warnings.add(t.id, t.source, "%s", tooLargeForManagedFields)
	}
	c := p.change(t, Update)
	c.Live, c.Provenance = live, p.provenanceOf(t, live, adopting)
	sent := desired
	if t.fullReplace.withoutDuplicates != nil {
		sent = t.fullReplace.withoutDuplicates
	}
	policy, err := p.policy(t)
	if err != nil {
		return Change{}, err
	}
	cmp, refused, err := p.compareUnder(ctx, policy, t, sent, live, &c)
	if err != nil {
		return Change{}, err
	}
	u := &updateDecision{p: p, t: t, comparison: cmp, fullDesired: desired, live: live, adopting: adopting, change: c}
	if err := u.predict(ctx); err != nil {
		return Change{}, err
	}
	more, err := u.decideCollisions(ctx, policy)
	if err != nil {
		return Change{}, err
	}
	if refused = append(refused, more...); len(refused) > 0 {
		return Change{}, t.reject(&ConflictError{Fields: refused})
	}
	u.warnOfKeptFields()
	return u.decideByDryRun(ctx)
}

// compareUnder compares a manifest with the live object and leaves to others the fields
// that the policy, an autoscaler or the cluster gives them. It notes in c what it left,
// and returns the conflicts that the policy refuses.
func (p *planning) compareUnder(ctx context.Context, policy ConflictPolicy, t *target, manifest, live *unstructured.Unstructured, c *Change) (*comparison, []FieldConflict, error) {
	cmp, err := p.comparer.compare(ctx, t, manifest.DeepCopy(), live)
	if err != nil {
		return nil, nil, &ObjectError{ID: t.id, Source: t.source, Doing: "comparing", Err: err}
	}
	if err := p.autoscalers.relinquishReplicas(ctx, t, cmp, c); err != nil {
		return nil, nil, err
	}
	cmp.relinquishClusterFilled(t)
	refused, err := p.decideConflicts(t, cmp, c, policy)
	return cmp, refused, err
}

// updateDecision is one update being decided.
type updateDecision struct {
	p            *planning
	t            *target
	comparison   *comparison
	fullDesired  *unstructured.Unstructured // before any field was relinquished
	live         *unstructured.Unstructured
	adopting     bool
	repaired     bool // the predicted object can't be reached by an apply
	precondition precondition
	relinquished bool
	change       Change
}

func (u *updateDecision) predict(ctx context.Context) error {
	if err := u.comparison.migrateAndPredict(u.adopting, u.p.a.opts.RevertManual, u.p.servesVersion(ctx, u.t)); err != nil {
		return u.t.reject(&InvalidError{Text: verify.Conceal(u.t.obj, err.Error())})
	}
	var err error
	if u.repaired, err = u.comparison.repair(u.live); err != nil {
		return &ObjectError{ID: u.t.id, Source: u.t.source, Doing: "comparing", Err: err}
	}
	u.change.Desired = u.comparison.desired
	u.change.TakenFrom = u.comparison.migrated.From
	u.precondition = precondition{uid: u.live.GetUID()}
	if u.adopting || u.comparison.migrated.Changed {
		u.precondition.resourceVersion = u.live.GetResourceVersion()
	}
	if u.adopting {
		u.change.Reason = adoptionReason(ownerOf(u.live))
	}
	if u.t.fullReplace.withoutDuplicates != nil {
		u.prepareFullReplace()
	}
	return nil
}

// warnOfKeptFields warns of fields that people have added: the object gets no
// fingerprint, so every release repeats the warning. It also warns, in the release that
// drops them, of dropped fields that stay because others own them.
func (u *updateDecision) warnOfKeptFields() {
	if u.adopting {
		return
	}
	if u.staysHeadless() {
		u.p.warnings.add(u.t.id, u.t.source, "the chart no longer sets spec.clusterIP: None, but it stays: the API server assigns no address to an existing headless Service;"+
			" to change it, delete the Service and deploy again")
	}
	for manager, paths := range u.comparison.heldByOthers() {
		u.p.warnings.add(u.t.id, u.t.source, "the chart no longer sets %s, but it stays, because it is also set by %s", strings.Join(paths, ", "), manager)
	}
	for manager, paths := range u.comparison.manualAdditions() {
		u.p.warnings.add(u.t.id, u.t.source, "%s added %s, which stays: add it to the chart, or remove it with --revert-manual-changes",
			manager, strings.Join(paths, ", "))
		u.change.manifestHash = ""
	}
}

func adoptionReason(from Owner) string {
	if from == (Owner{}) {
		return "adopted: it belonged to no release"
	}
	return "taken over from release " + from.String()
}

// decideByDryRun asks the server for the result of the update, unless the prediction says
// that nothing changes.
func (u *updateDecision) decideByDryRun(ctx context.Context) (Change, error) {
	if sameContent(u.comparison.predicted, u.live) {
		return u.unchanged(ctx)
	}
	result, err := u.dryRun(ctx)
	if err == nil {
		return u.handleAnswer(ctx, result)
	}
	fixed, unknown := u.p.immutableFields(ctx, u.t, err)
	switch {
	case unknown != nil:
		return Change{}, &ObjectError{ID: u.t.id, Source: u.t.source, Doing: "looking for immutable fields of", Err: unknown}
	case len(fixed) > 0:
		return u.p.recreate(ctx, u, err, fixed)
	case verify.MissingPermission(err, u.t.id.Namespace) != nil && !u.relinquished:
		// A local estimate has no defaults, so those of the live object are kept.
		if keep := u.undeclaredDefaults(); !keep.Empty() {
			return u.relinquish(ctx, keep)
		}
	}
	u.change.Predicted = nil
	c, err := u.p.decideRefused(ctx, u.t, u.comparison.desired, u.change, err)
	// A change of another live object was decided anew, and has its own writes.
	if err == nil && c.Unverified != "" && c.Deferral == nil && c.Live == u.live {
		c.execution = u.execution()
		c.Predicted = u.comparison.predicted
		diff, err := u.differences(c.Predicted)
		if err != nil {
			return Change{}, err
		}
		u.listFieldChanges(&c, diff, c.Predicted)
	}
	return c, err
}

// dryRun makes the dry run that is closest to the real request. If ownership has to be
// migrated first, a dry run of the apply can't show its result, so the predicted object
// is checked as a plain patch.
func (u *updateDecision) dryRun(ctx context.Context) (*unstructured.Unstructured, error) {
	if u.t.fullReplace.withoutDuplicates != nil {
		return u.p.a.put(ctx, u.t, u.comparison.predicted, asDryRun)
	}
	if !u.comparison.migrated.Changed && !u.repaired {
		return u.p.a.apply(ctx, u.t, u.comparison.desired, u.precondition, asDryRun)
	}
	return u.p.a.sendJSONPatch(ctx, u.t, u.live.GetResourceVersion(), u.patchToPredicted(), asDryRun)
}

// patchToPredicted makes what is predicted of the live object.
func (u *updateDecision) patchToPredicted() []patchOperation {
	return jsonPatchOf("", plainContent(u.live), plainContent(u.comparison.predicted))
}

// handleAnswer turns the server's answer into a change.
func (u *updateDecision) handleAnswer(ctx context.Context, result *unstructured.Unstructured) (Change, error) {
	if sameContent(result, u.live) {
		return u.unchanged(ctx)
	}
	if rv := result.GetResourceVersion(); rv != "" && rv != u.live.GetResourceVersion() && u.t.progress.attempts < maxAttempts {
		// A dry run returns the version that it started from. Another version means that
		// a controller has written the object since we read it; its changes must not
		// count as the chart's.
		u.t.progress.attempts++
		return u.p.redecide(ctx, u.t)
	}
	diff, err := u.differences(result)
	if err != nil {
		return Change{}, err
	}
	if keep := u.changedDefaults(diff); !u.relinquished && !keep.Empty() {
		// These values were once set by defaults or webhooks, which would now set others.
		// They aren't ours to change.
		return u.relinquish(ctx, keep)
	}
	u.change.Predicted = result
	u.change.execution = u.execution()
	u.listFieldChanges(&u.change, diff, result)
	return u.change, nil
}

// relinquish decides again with more fields relinquished.
func (u *updateDecision) relinquish(ctx context.Context, keep *fieldpath.Set) (Change, error) {
	u.relinquished = true
	u.comparison.relinquish = u.comparison.relinquish.Union(keep)
	if err := u.predict(ctx); err != nil {
		return Change{}, err
	}
	return u.decideByDryRun(ctx)
}

// changedDefaults returns the fields that the migration of ownership would change
// although neither the chart nor a stored revision states them. It returns only fields of
// structures: list items and map keys that nobody declared were added under Helm's name.
func (u *updateDecision) changedDefaults(diff *typed.Comparison) *fieldpath.Set {
	out := fieldpath.NewSet()
	if !u.comparison.migrated.Changed {
		return out
	}
	diff.Modified.Union(diff.Removed).Iterate(func(path fieldpath.Path) {
		if u.comparison.isDeclared(path) || !u.comparison.migrated.Ours.Has(path) || u.reverted(path) {
			return
		}
		if !fields.Within(diff.Removed, path[:len(path)-1]) && !isItemOrMapKey(u.comparison.live, path) {
			out.Insert(path.Copy())
		}
	})
	return out
}

// reverted reports whether a field is removed because somebody set it by hand.
func (u *updateDecision) reverted(path fieldpath.Path) bool {
	return u.p.a.opts.RevertManual && slices.ContainsFunc(u.comparison.entries, func(e ownership.Entry) bool { return e.IsManual() && e.Set.Has(path) })
}

// undeclaredDefaults returns the fields of structures that would become ours although
// nobody declared them: defaults. See changedDefaults.
func (u *updateDecision) undeclaredDefaults() *fieldpath.Set {
	out := fieldpath.NewSet()
	u.comparison.migrated.Ours.Iterate(func(path fieldpath.Path) {
		if u.comparison.isDeclared(path) || u.reverted(path) {
			return
		}
		for i := 1; i <= len(path); i++ {
			if at := path[:i]; !u.comparison.isDeclared(at) && isItemOrMapKey(u.comparison.live, at) {
				return
			}
		}
		out.Insert(path.Copy())
	})
	return out
}

// unchanged returns the decision that the object's content needs no change; at most its
// managedFields do.
func (u *updateDecision) unchanged(ctx context.Context) (Change, error) {
	c := u.change
	c.Action, c.Predicted = Unchanged, u.live
	c.Conflicts = slices.DeleteFunc(slices.Clone(c.Conflicts), func(f FieldConflict) bool { return f.Outcome != OutcomeYielded })
	ours := ownership.ApplyEntry(u.comparison.entries)
	switch {
	case u.t.fullReplace.withoutDuplicates != nil:
		c.execution = nil
		return c, nil
	case u.comparison.migrated.Changed:
		c.execution = u.p.executionOf(u.t, write{verb: migrateOwnership, entries: u.comparison.migrated.WithOurs(u.comparison.desired.GetAPIVersion(), u.comparison.desiredSet)})
	case ours == nil || !ours.Set.Equals(u.comparison.desiredSet):
		c.execution = u.p.executionOf(u.t, write{verb: applyObject, precondition: u.precondition})
	default:
		c.execution = nil
		return c, nil
	}
	err := u.p.permissions.check(ctx, &c, "patch", u.t.mapping)
	return c, err
}

// execution says how to carry the update out.
func (u *updateDecision) execution() *execution {
	switch {
	case u.t.fullReplace.withoutDuplicates != nil:
		return u.p.executionOf(u.t, write{verb: replaceObject, object: u.comparison.predicted})
	case u.repaired:
		return u.p.executionOf(u.t, write{verb: patchObject, operations: u.patchToPredicted()})
	}
	e := u.p.executionOf(u.t)
	if u.comparison.migrated.Changed {
		e.writes = append(e.writes, write{verb: migrateOwnership, entries: u.comparison.migrated.Entries})
	}
	e.writes = append(e.writes, write{verb: applyObject, precondition: u.precondition})
	return e
}

// differences compares the live object with what it would become.
func (u *updateDecision) differences(result *unstructured.Unstructured) (*typed.Comparison, error) {
	diff, err := u.comparison.differences(result)
	if err != nil {
		return nil, &ObjectError{ID: u.t.id, Source: u.t.source, Doing: "comparing", Err: err}
	}
	return diff, nil
}

// listFieldChanges lists what changes, and drops conflicts that come to nothing: the same
// quantity written otherwise.
func (u *updateDecision) listFieldChanges(c *Change, diff *typed.Comparison, result *unstructured.Unstructured) {
	u.rememberPrior(c, diff, result)
	states := compare.States{Before: u.live, After: result, Desired: u.change.Desired, Managed: u.comparison.entries}
	c.Fields = states.Fields(diff)
	for i := range c.Fields {
		if f := &c.Fields[i]; f.Kind == compare.Removed {
			f.Revision = u.comparison.lastDeclaredIn(f.Path)
		}
	}
	c.Conflicts = slices.DeleteFunc(slices.Clone(c.Conflicts), func(f FieldConflict) bool {
		before, _ := fields.Value(u.live.Object, f.path)
		after, ok := fields.Value(result.Object, f.path)
		return f.Outcome != OutcomeYielded && f.path != nil && ok && fields.Equal(before, after)
	})
}

// servesVersion tells of which API versions the server still has a kind. Of a kind
// whose CRD changes with the release that CRD decides, also afterwards: what
// discovery lists lags behind.
func (p *planning) servesVersion(ctx context.Context, t *target) func(apiVersion string) bool {
	return func(apiVersion string) bool {
		gvk := schema.FromAPIVersionAndKind(apiVersion, t.mapping.GVK.Kind)
		if p.prerequisites.expected(t.definition()) {
			_, comes := p.definitions.kinds[gvk]
			return comes
		}
		_, err := p.a.cluster.Mapping(ctx, gvk, false)
		var notServed *kube.NoKindMatchError
		return !errors.As(err, &notServed) // any other error counts as served
	}
}
