package apply

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"deployer/apply/decide"
	"deployer/apply/fields"
	"deployer/apply/ownership"
	"deployer/apply/predict"
	"deployer/apply/provenance"
	"deployer/apply/verify"
	"deployer/internal/annotation"
	"deployer/internal/hide"
	"deployer/internal/kube"
)

// This file finds contested fields and carries out what decide.FieldRules says of them.

// fieldRules returns the rules for the fields of an object: the policy for conflicts of its annotation, or else the option's.
func (p *planning) fieldRules(t *target) (decide.FieldRules, error) {
	rules := decide.FieldRules{Conflicts: p.a.opts.Conflicts, Undo: p.req.Undo}
	word, stated, errs := annotation.Conflicts.Read(t.obj.GetAnnotations())
	switch {
	case len(errs) > 0:
		return rules, rejectf(t.id, t.source, "metadata.annotations["+errs[0].Name+"]", "use take, fail or yield", "%v", errs[0].Err)
	case stated:
		rules.Conflicts = decide.ConflictPolicy(word)
	}
	return rules, nil
}

// contest lists a contested field with its outcome.
func (u *updateDecision) contest(f FieldConflict) decide.FieldOutcome {
	f.Outcome = u.rules.Outcome(f.Contest, true)
	u.change.Conflicts = append(u.change.Conflicts, f)
	return f.Outcome
}

// contested describes a contested field, by its values in the object of its manager, and in the chart's.
func (u *updateDecision) contested(why decide.Contest, path fieldpath.Path, by ownership.FieldManager, theirs, ours *unstructured.Unstructured) FieldConflict {
	secret := hide.ConfidentialFields(u.live, u.prediction.Desired, u.t.obj)
	f := FieldConflict{Contest: why, Path: secret.HidePath(fields.String(path), nil), FieldManager: by, FieldPath: path}
	f.Before, f.After = valueTexts(theirs, ours, path, secret, u.p.a.opts.Hidden)
	return f
}

// decideConflicts decides about the fields that other managers set to other values.
func (u *updateDecision) decideConflicts() error {
	conflicts, err := u.prediction.Conflicts()
	if err != nil {
		return u.t.reject(&InvalidError{Text: verify.Conceal(u.t.obj, err.Error())})
	}
	for _, con := range conflicts {
		if u.restarted != nil && con.Path.Equals(u.restarted) {
			continue // the chart doesn't state it
		}
		why := decide.SetByOthers
		if provenance.IsOwnershipMetadata(con.Path) {
			why = decide.SaysWhoseItIs
		}
		f := u.contested(why, con.Path, con.By.FieldManager, u.live, u.prediction.Desired)
		switch u.contest(f) {
		case decide.OutcomeYielded:
			u.prediction.RelinquishField(con.Path)
			if u.rules.Undo {
				u.p.warnings.add(u.t.id, u.t.source, "%s stays as %s set it; the rest of the failed run is rolled back", f.Path, con.By.Manager)
			}
		case decide.OutcomeTaken:
			if con.Repeated {
				u.p.warnings.add(u.t.id, u.t.source, "%s changed %s since the last release and may change it again: leave it out of the chart, or annotate the object with %s: yield",
					con.By.Manager, f.Path, annotation.Conflicts.Name)
			}
		}
	}
	return nil
}

// leaveUnchangeable leaves to others what they have changed for good: what the chart has as the last revision had it, and the API server
// doesn't let go back. That is the size of a claim that has grown, and fields of custom resources, unless these may be recreated. Helm
// leaves them in custom resources, where it compares only manifests, and fails for a claim. It reports whether there is something.
func (u *updateDecision) leaveUnchangeable(refusal verify.Answer, immutable []string) (left bool) {
	switch {
	case u.t.id.GroupKind() == kube.PersistentVolumeClaimKind && !refusal.IsByAdmission:
		for _, cause := range refusal.Causes {
			immutable = append(immutable, cause.Field)
		}
	case kube.IsBuiltinGroup(u.t.id.Group) || u.permissionToRecreate() == decide.Permitted:
		return false
	}
	last := objectOf(u.p.history.latestDeclared(u.t.id).Object)
	for i := range u.change.Conflicts {
		f := &u.change.Conflicts[i]
		isWithin := func(name string) bool { return strings.HasPrefix(fields.String(f.FieldPath)+".", name+".") }
		if f.Outcome != decide.OutcomeTaken || f.Contest != decide.SetByOthers || f.CollidesWith != "" || !slices.ContainsFunc(immutable, isWithin) {
			continue
		}
		was, declared := fields.Value(last, f.FieldPath)
		if wanted, stated := fields.Value(u.prediction.Desired.Object, f.FieldPath); !declared || !stated || !fields.Equal(was, wanted) {
			continue
		}
		if !left { // a trial has the one before
			u.prediction.Desired = u.prediction.Desired.DeepCopy()
		}
		f.Outcome, left = decide.OutcomeYielded, true
		u.prediction.RelinquishField(f.FieldPath)
		u.p.warnings.add(u.t.id, u.t.source, "%s stays as %s set it: it can't be changed back", f.Path, f.Manager)
	}
	return left
}

// relinquishReplicas leaves the number of replicas out of the desired object if an
// autoscaler sets it. It never removes the number from the live object: without a value
// it would become 1 (kubernetes.io: "Migrating Deployments ... to horizontal
// autoscaling"). Where the chart leaves it to an autoscaler that comes now and would never
// start what is stopped, the number is that of the revision before.
func (u *updateDecision) relinquishReplicas() {
	path, by := u.known.scaling.path, u.known.scaling.by
	if path == nil {
		return
	}
	wanted, stated := fields.Value(u.prediction.Desired.Object, path)
	live, has := fields.Value(u.live.Object, path)
	former, was := fields.Value(objectOf(u.p.history.latestDeclared(u.t.id).Object), path)
	if u.known.scaling.stopped && was {
		u.restarted, u.fullDesired = path, u.fullDesired.DeepCopy()
		for _, obj := range []*unstructured.Unstructured{u.prediction.Desired, u.fullDesired} {
			_ = unstructured.SetNestedField(obj.Object, former, fields.Names(path)...)
		}
		return
	}
	if stated && (by.Manager == "" || by.Subresource == "" && has && fields.Equal(live, int64(0))) {
		// Zero replicas disable an autoscaler. No scale request has set them, so the
		// chart's number is applied.
		// https://kubernetes.io/docs/concepts/workloads/autoscaling/horizontal-pod-autoscale/#implicit-maintenance-mode-deactivation
		return
	}
	u.scaledAt = path
	if stated && !(has && fields.Equal(live, wanted)) {
		u.contest(u.contested(decide.Scaled, path, by, u.live, u.prediction.Desired))
	}
	u.prediction.RelinquishField(path)
}

// valueTexts writes the values of a field in two objects for people. Confidential texts are hidden
// before values are cut: the beginning of one can't be told from other texts.
func valueTexts(a, b *unstructured.Unstructured, path fieldpath.Path, secret hide.Fields, hidden *hide.Texts) (string, string) {
	var values [2]any
	var has [2]bool
	for i, obj := range []*unstructured.Unstructured{a, b} {
		values[i], has[i] = fields.Value(objectOf(obj), path)
		if secret.HidesAny(fields.Names(path), values[i]) {
			values[i] = hide.Placeholder
		}
	}
	values[0], values[1] = hidden.HidePair(values[0], values[1])
	return hidden.HideTextPair(valueText(values[0], has[0]), valueText(values[1], has[1])) // the keys of maps
}

// valueText writes a value, or the placeholder as it is.
func valueText(v any, ok bool) string {
	if v == hide.Placeholder {
		return hide.Placeholder
	}
	return fields.ValueText(v, ok)
}

// decideCollisions decides about items of others that can't be there beside the chart's, and about former members of unions.
func (u *updateDecision) decideCollisions() error {
	for range predict.CollisionRuleCount() { // leaving an item out may cause another collision
		if len(u.prediction.Collisions) == 0 {
			break
		}
		outcomes := map[string]decide.FieldOutcome{}
		for _, col := range u.prediction.Collisions {
			outcome, seen := outcomes[col.Theirs.String()] // one item collides in several ways, or with several
			if !seen {
				outcome = u.contestItem(decide.SetByOthers, col)
				outcomes[col.Theirs.String()] = outcome
			}
			if outcome == decide.OutcomeYielded {
				u.prediction.RelinquishItem(col.Relinquishable)
				u.prediction.RelinquishField(col.Theirs)
				continue
			}
			u.prediction.RemoveTheirs(col.Theirs)
			if outcome == decide.OutcomeTaken && !seen {
				u.p.warnings.add(u.t.id, u.t.source, "%s, set by %s, is removed: it %s the chart's %s", fields.String(col.Theirs), managersOf(col.Owners), col.Why, fields.String(col.Ours))
			}
		}
		if err := u.computePrediction(); err != nil {
			return err
		}
	}
	for _, col := range u.prediction.Overridden {
		u.contestItem(decide.FormerMember, col)
	}
	return nil
}

// contestItem lists an item of others with its outcome, once for each of its owners.
func (u *updateDecision) contestItem(why decide.Contest, col predict.Collision) (outcome decide.FieldOutcome) {
	for _, owner := range col.Owners {
		f := u.contested(why, col.Theirs, owner, u.live, nil)
		f.CollidesWith = fields.String(col.Ours)
		outcome = u.contest(f)
	}
	return outcome
}

func managersOf(list []ownership.FieldManager) string {
	var names []string
	for _, owner := range list {
		if !slices.Contains(names, owner.Manager) {
			names = append(names, owner.Manager)
		}
	}
	return strings.Join(names, ", ")
}
