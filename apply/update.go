package apply

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"deployer/apply/compare"
	"deployer/apply/decide"
	"deployer/apply/fields"
	"deployer/apply/ownership"
	"deployer/apply/predict"
	"deployer/apply/provenance"
	"deployer/apply/verify"
	"deployer/internal/annotation"
	"deployer/internal/kube"
)

// decideUpdate decides about an existing object that a claim makes ours. It leaves to others the fields that
// the policy, an autoscaler or the cluster gives them, and predicts what an apply makes of the live object.
func (p *planning) decideUpdate(t *target, f *facts, claim decide.Decision) (Change, error) {
	rules, err := p.fieldRules(t)
	if err != nil && !p.inspects {
		return Change{}, err
	}
	known, err := f.update.get(p.factsOfUpdate(t, f))
	switch {
	case err != nil:
		return Change{}, err
	case known.live == nil:
		return Change{}, p.lookAgain(t, f)
	case known.unconverted:
		return p.updateLater(t, f), nil
	}
	u := &updateDecision{
		p: p, t: t, facts: f, known: known, rules: rules, replacement: p.replacementOf(t, f, known),
		fullDesired: f.desired, live: f.full, adopting: claim.Adopts, change: p.newChange(t, decide.Update),
	}
	u.change.Live, u.change.Reason = f.full, cmp.Or(claim.Reason, u.replacement.reason)
	u.change.Provenance = p.history.provenanceOf(t, f.full, p.a.owner, claim.Adopts)
	if err := u.begin(); err != nil {
		return Change{}, err
	}
	if others := u.ownersElsewhere(); len(others) > 0 && !u.replacement.isNeeded() {
		causes, err := f.unforced.get(p.a.applyUnforced(t, u.prediction.Desired))
		if err != nil {
			return Change{}, err
		}
		u.decideConflictsElsewhere(others, causes) // without an answer, the dry run of the change tells
	}
	if err := u.computePrediction(); err != nil {
		return Change{}, err
	}
	if err := u.decideCollisions(); err != nil {
		return Change{}, err
	}
	refused := slices.DeleteFunc(slices.Clone(u.change.Conflicts), func(f FieldConflict) bool { return f.Outcome != decide.OutcomeRefused })
	if len(refused) > 0 && !u.p.inspects {
		_, stated, _ := annotation.Conflicts.Read(u.t.obj.GetAnnotations())
		return Change{}, u.t.reject(&ConflictError{Fields: refused, Policy: u.rules.Conflicts, Stated: stated})
	}
	return u.decideByDryRun()
}

// refused rejects an update that can't be made. An inspection tells what it would come to instead.
func (u *updateDecision) refused(why error) (Change, error) {
	if !u.p.inspects {
		return Change{}, u.t.reject(why)
	}
	c := u.change
	if !errors.As(why, new(*ImmutableError)) {
		c.Unverified = "the server would not accept the release's manifest now: " + why.Error()
	}
	err := u.estimate(&c)
	return c, err
}

// begin leaves fields to others, and lists the conflicts.
func (u *updateDecision) begin() error {
	u.prediction = predict.New(u.known.live, cmp.Or(u.replacement.applicable, u.fullDesired).DeepCopy(), u.known.declared, u.known.olderDeclared)
	if len(u.known.views) > 0 {
		u.prediction.Unlike = func(apiVersion string) bool { return u.known.views[apiVersion] != nil }
	}
	u.relinquishReplicas()
	u.prediction.RelinquishClusterFilled(u.t.mapping.HasStatus)
	if owner := provenance.OwnerOf(u.live); u.t.fromCRDs && owner != (provenance.Owner{}) && owner != u.p.a.owner {
		u.prediction.RelinquishMetadata() // it is in the templates of that release, which applies it under our field manager
	}
	return u.decideConflicts()
}

// updateDecision is one update being decided.
type updateDecision struct {
	p                    *planning
	t                    *target
	facts                *facts
	known                updateFacts
	rules                decide.FieldRules
	replacement          replacement
	prediction           *predict.Prediction
	fullDesired          *unstructured.Unstructured // before any field was relinquished
	live                 *unstructured.Unstructured
	adopting             bool
	scaledAt             fieldpath.Path // of the number of replicas if the chart's doesn't count; else nil
	restarted            fieldpath.Path // of the number of replicas if it is that of the revision before; else nil
	precondition         precondition
	defaultsRelinquished bool
	change               Change
}

func (u *updateDecision) computePrediction() error {
	terms := ownership.Terms{
		Adopting: u.adopting, RevertManual: u.p.a.opts.RevertManual, Served: func(apiVersion string) bool { return u.known.served[apiVersion] },
		Custom: !kube.IsBuiltinGroup(u.t.id.Group),
	}
	if err := u.prediction.Compute(terms); err != nil {
		return u.t.reject(&InvalidError{Text: verify.Conceal(u.t.obj, err.Error())})
	}
	u.change.Desired = u.prediction.Desired
	u.change.TakenFrom = u.prediction.Migrated.From
	u.precondition = precondition{uid: u.live.GetUID()}
	// Applies are forced, so that what others write after the decision would be taken from them.
	if u.adopting || u.prediction.Migrated.Changed || u.rules.Conflicts != decide.TakeConflicts {
		u.precondition.resourceVersion = u.live.GetResourceVersion()
	}
	if u.replacement.isNeeded() {
		u.prepareFullReplace()
	}
	return nil
}

// warnOfKeptFields warns of fields that people have added and that stay in result, the object that the
// live one becomes: the object gets no fingerprint, so every release repeats the warning. It also
// warns, in the release that drops them, of dropped fields that stay because others own them.
func (u *updateDecision) warnOfKeptFields(result *unstructured.Unstructured) {
	if u.adopting {
		return
	}
	if u.staysHeadless() {
		u.p.warnings.add(u.t.id, u.t.source, "the chart no longer sets spec.clusterIP: None, but it stays: the API server assigns no address to an existing headless Service;"+
			" to change it, delete the Service and deploy again")
	}
	for manager, paths := range u.prediction.DroppedButOwnedByOthers(result) {
		u.p.warnings.add(u.t.id, u.t.source, "the chart no longer sets %s, but it stays, because it is also set by %s", strings.Join(paths, ", "), manager)
	}
	for manager, paths := range u.prediction.ManualAdditions(result) {
		u.p.warnings.add(u.t.id, u.t.source, "%s added %s, which stays: add it to the chart, or remove it with --revert-manual-changes",
			manager, strings.Join(paths, ", "))
		u.change.manifestHash = ""
	}
}

// staysHeadless reports whether a chart drops the clusterIP: None of a Service. The API
// server ignores that and keeps None.
func (u *updateDecision) staysHeadless() bool {
	if u.t.id.Group != "" || u.t.id.Kind != "Service" || !u.prediction.Migrated.Ours.Has(fieldpath.MakePathOrDie("spec", "clusterIP")) {
		return false
	}
	live, _, _ := unstructured.NestedString(u.live.Object, "spec", "clusterIP")
	kind, _, _ := unstructured.NestedString(u.fullDesired.Object, "spec", "type")
	return live == "None" && !u.statesAddress() && kind != "ExternalName"
}

// statesAddress reports whether the chart states the address of a Service, which may be none.
func (u *updateDecision) statesAddress() bool {
	_, stated, _ := unstructured.NestedString(u.fullDesired.Object, "spec", "clusterIP")
	return stated
}

// decideByDryRun wants to know from the server what the update comes to, unless the prediction says
// that nothing changes.
func (u *updateDecision) decideByDryRun() (Change, error) {
	if u.prediction.Migrated.Elsewhere == "" && compare.SameContent(u.prediction.Predicted, u.live) {
		return u.unchanged(), nil
	}
	if movesToken(u.live, u.fullDesired) {
		return u.decideRecreation(errors.New("a token can't move to another account"), []string{"metadata.annotations[" + corev1.ServiceAccountNameKey + "]"})
	}
	keep := fieldpath.NewSet() // if there is no answer: an estimate has no defaults, so those of the live object are kept
	if !u.defaultsRelinquished {
		keep = u.prediction.UndeclaredDefaults()
	}
	said, err := u.p.try(u.t, u.facts, trial{write: u.attempt(), body: u.prediction.Desired, final: !keep.Empty()})
	refusal := verify.Read(said.refusal)
	switch {
	case err != nil:
		return Change{}, err
	case refusal.Err == nil:
		return u.handleAnswer(said.result)
	case refusal.Detail == verify.NotPruned && u.ownersFirst():
		return u.handleAnswer(u.prediction.Predicted)
	case refusal.Detail == verify.NoAddress && !u.statesAddress(): // a type that a Service without an address can't get
		return u.decideRecreation(refusal.Err, []string{"spec.clusterIP"})
	}
	immutable, err := u.p.definitions.fieldsCalledImmutable(u.t, u.facts, refusal)
	switch {
	case err != nil:
		return Change{}, err
	case u.leaveUnchangeable(refusal, immutable):
		if err := u.computePrediction(); err != nil {
			return Change{}, err
		}
		return u.decideByDryRun()
	case len(immutable) > 0:
		return u.decideRecreation(refusal.Err, immutable)
	case refusal.RefusesWrite() && !keep.Empty():
		return u.relinquish(keep)
	}
	return u.handleRefusal(refusal.Err)
}

// handleRefusal decides what it means that the server wouldn't accept the update.
func (u *updateDecision) handleRefusal(refusal error) (Change, error) {
	u.change.Predicted = nil
	c, err := u.p.decideRefused(u.t, u.facts, u.change, refusal)
	rejected, isRejected := errors.AsType[*Rejection](err)
	switch {
	case isRejected:
		return u.refused(rejected.Err)
	case err == nil && c.Unverified != "" && (c.Deferral == nil || u.p.inspects):
		c.writes = u.writes()
		err = u.estimate(&c)
	}
	return c, err
}

// estimate makes a change one that only the prediction tells about.
func (u *updateDecision) estimate(c *Change) error {
	c.Predicted = u.prediction.Predicted
	u.warnOfKeptFields(c.Predicted)
	diff, err := u.differences(c.Predicted)
	if err == nil {
		u.listFieldChanges(c, diff, c.Predicted)
	}
	return err
}

// attempt is the write whose dry run is closest to the real request. If ownership has to be
// migrated first, a dry run of the apply can't show its result, so the predicted object
// is checked as a plain patch.
func (u *updateDecision) attempt() write {
	switch {
	case u.replacement.isNeeded():
		return write{verb: replaceObject, object: u.prediction.Predicted}
	case !u.prediction.Repaired && (!u.prediction.Migrated.Changed || u.prediction.Migrated.Elsewhere != ""):
		return write{verb: applyObject, precondition: u.precondition}
	}
	return write{verb: patchObject, precondition: u.unchangedSince(), operations: u.patchToPredicted()}
}

// patchToPredicted makes what is predicted of the live object.
func (u *updateDecision) patchToPredicted() []patchOperation {
	return jsonPatchOf("", compare.WithoutServerMetadata(u.live), compare.WithoutServerMetadata(u.prediction.Predicted))
}

// ownersFirst reports whether the owners of fields have to be written before the API server can say what an apply does.
func (u *updateDecision) ownersFirst() bool {
	return u.prediction.Migrated.Changed && u.prediction.Migrated.Elsewhere != ""
}

// handleAnswer turns the server's answer into a change.
func (u *updateDecision) handleAnswer(result *unstructured.Unstructured) (Change, error) {
	if !u.ownersFirst() { // else the answer doesn't tell
		if u.p.warnings.warnOfDropped(u.t, changedByServer(u.known.live.Converter, u.prediction.Desired, result)) {
			u.change.manifestHash = "" // no fingerprint: the cluster may have the fields later
		}
		if compare.SameContent(result, u.live) {
			return u.unchanged(), nil
		}
	}
	if rv := result.GetResourceVersion(); rv != "" && rv != u.live.GetResourceVersion() && u.facts.attempts < maxAttempts {
		// A dry run returns the version that it started from. Another version means that
		// a controller has written the object since we read it; its changes must not
		// count as the chart's.
		return Change{}, u.p.lookAgain(u.t, u.facts)
	}
	diff, err := u.differences(result)
	if err != nil {
		return Change{}, err
	}
	if keep := u.prediction.ChangedDefaults(diff); !u.defaultsRelinquished && !keep.Empty() {
		// These values were once set by defaults or webhooks, which would now set others.
		// They aren't ours to change.
		return u.relinquish(keep)
	}
	u.warnOfKeptFields(result)
	u.warnOfConversion()
	if u.ownersFirst() {
		u.change.Unverified = "its fields were set in " + u.prediction.Migrated.Elsewhere + ": the API server says what goes of them when their owners are written"
	}
	u.change.Predicted = result
	u.change.writes = u.writes()
	u.listFieldChanges(&u.change, diff, result)
	return u.change, nil
}

// relinquish decides again with more fields relinquished.
func (u *updateDecision) relinquish(keep *fieldpath.Set) (Change, error) {
	u.defaultsRelinquished = true
	u.prediction.RelinquishDefaults(keep)
	if err := u.computePrediction(); err != nil {
		return Change{}, err
	}
	return u.decideByDryRun()
}

// unchanged returns the decision that the object's content needs no change; at most its
// managedFields do. Whether that is allowed isn't asked: it is put off if it isn't.
func (u *updateDecision) unchanged() Change {
	u.warnOfKeptFields(u.live)
	c := u.change
	c.Action, c.Predicted = decide.Unchanged, u.live
	c.Conflicts = slices.DeleteFunc(slices.Clone(c.Conflicts), func(f FieldConflict) bool { return f.Outcome != decide.OutcomeYielded })
	switch ours := ownership.ApplyEntry(u.prediction.Live.Entries); {
	case u.replacement.isNeeded():
	case u.prediction.Migrated.Changed:
		c.writes = []write{{verb: migrateOwnership, precondition: u.unchangedSince(), entries: u.prediction.Migrated.WithOurs(u.prediction.Desired.GetAPIVersion(), u.prediction.DesiredFields)}}
	case ours == nil || !ours.Set.Equals(u.prediction.DesiredFields):
		c.writes = []write{{verb: applyObject, precondition: u.precondition}}
	}
	return c
}

// unchangedSince is the precondition of writes that were computed from the live object.
func (u *updateDecision) unchangedSince() precondition {
	return precondition{u.live.GetUID(), u.live.GetResourceVersion()}
}

// writes carry the update out.
func (u *updateDecision) writes() []write {
	apply := write{verb: applyObject, precondition: u.precondition}
	switch {
	case u.replacement.isNeeded():
		return []write{{verb: replaceObject, object: u.prediction.Predicted}}
	case u.prediction.Repaired:
		return []write{{verb: patchObject, precondition: u.unchangedSince(), operations: u.patchToPredicted()}}
	case u.ownersFirst():
		return []write{{verb: migrateOwnership, precondition: u.unchangedSince(), entries: u.prediction.Migrated.Entries, isFirst: true}}
	case u.prediction.Migrated.Changed:
		return []write{{verb: migrateOwnership, precondition: u.unchangedSince(), entries: u.prediction.Migrated.Entries}, apply}
	}
	return []write{apply}
}

// differences compares the live object with what it would become.
func (u *updateDecision) differences(result *unstructured.Unstructured) (*typed.Comparison, error) {
	diff, err := u.prediction.Live.Differences(result)
	if err != nil {
		return nil, &ObjectError{ID: u.t.id, Source: u.t.source, Doing: "comparing", Err: err}
	}
	return diff, nil
}

// listFieldChanges lists what changes, and drops conflicts that come to nothing: the same
// quantity written otherwise.
func (u *updateDecision) listFieldChanges(c *Change, diff *typed.Comparison, result *unstructured.Unstructured) {
	u.rememberPrior(c, diff, result)
	states := compare.States{Before: u.live, After: result, Desired: u.change.Desired, Managed: u.prediction.Live.Entries}
	c.Fields = states.Fields(diff)
	for i := range c.Fields {
		if f := &c.Fields[i]; f.Type == compare.Removed {
			f.Revision = u.prediction.LastDeclaredIn(f.Path)
		}
	}
	c.Conflicts = slices.DeleteFunc(slices.Clone(c.Conflicts), func(f FieldConflict) bool {
		before, _ := fields.Value(u.live.Object, f.FieldPath)
		after, ok := fields.Value(result.Object, f.FieldPath)
		return f.Outcome != decide.OutcomeYielded && f.FieldPath != nil && ok && fields.Equal(before, after)
	})
}
