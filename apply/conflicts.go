package apply

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"deployer/apply/fields"
	"deployer/apply/ownership"
	"deployer/apply/predict"
	"deployer/apply/provenance"
	"deployer/apply/verify"
	"deployer/internal/annotation"
	"deployer/internal/hide"
)

// conflictPolicyOf returns the conflict policy of an object: its annotation's, or else the
// option's.
func (o Options) conflictPolicyOf(t *target) (ConflictPolicy, error) {
	word, stated, errs := annotation.Conflicts.Read(t.obj.GetAnnotations())
	switch {
	case len(errs) > 0 && !o.rejectNothing:
		return "", rejectf(t.id, t.source, "metadata.annotations["+errs[0].Name+"]", "use take, fail or yield", "%v", errs[0].Err)
	case !stated, o.rejectNothing && word == string(FailOnConflict):
		return o.Conflicts, nil
	}
	return ConflictPolicy(word), nil
}

// decideConflicts decides about the fields that other managers set to other values.
func (u *updateDecision) decideConflicts() error {
	conflicts, err := u.prediction.Conflicts()
	if err != nil {
		return u.t.reject(&InvalidError{Text: verify.Conceal(u.t.obj, err.Error())})
	}
	for _, con := range conflicts {
		f := u.describeConflict(con)
		u.change.Conflicts = append(u.change.Conflicts, f)
		switch {
		case f.Outcome == OutcomeYielded:
			u.prediction.RelinquishField(con.Path)
			if u.p.req.Undo {
				u.p.warnings.add(u.t.id, u.t.source, "%s stays as %s set it; the rest of the failed run is rolled back", f.Path, con.By.Manager)
			}
		case f.Outcome == OutcomeTaken && con.Repeated:
			u.p.warnings.add(u.t.id, u.t.source, "%s changed %s since the last release and may change it again: leave it out of the chart, or annotate the object with %s: yield",
				con.By.Manager, f.Path, annotation.Conflicts.Name)
		}
	}
	return nil
}

func (u *updateDecision) describeConflict(con predict.Conflict) FieldConflict {
	secret := hide.ConfidentialFields(u.live, u.prediction.Desired, u.t.obj)
	f := FieldConflict{
		Path:         secret.HidePath(fields.String(con.Path), nil),
		FieldManager: con.By.FieldManager, Outcome: u.policy.outcome(), FieldPath: con.Path,
	}
	if provenance.IsOwnershipMetadata(con.Path) { // an object that may be changed becomes the release's, or stays so
		f.Outcome = OutcomeTaken
	}
	f.Before, f.After = valueTexts(u.live, u.prediction.Desired, con.Path, secret, u.p.a.opts.Hidden)
	return f
}

// valueTexts writes the values of a field in two objects for people. Confidential texts are hidden
// before values are cut: the beginning of one can't be told from other texts.
func valueTexts(a, b *unstructured.Unstructured, path fieldpath.Path, secret hide.Fields, hidden *hide.Texts) (string, string) {
	var values [2]any
	var has [2]bool
	for i, obj := range []*unstructured.Unstructured{a, b} {
		if values[i], has[i] = fields.Value(obj.Object, path); has[i] && secret.HasHiddenWithin(fields.Names(path)) {
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

// decideCollisions decides about collisions as the policy has it. What goes in any case counts as taken.
func (u *updateDecision) decideCollisions() error {
	if err := u.applyPolicyToCollisions(); err != nil {
		return err
	}
	for _, col := range u.prediction.Overridden() {
		u.change.Conflicts = append(u.change.Conflicts, u.describeCollision(col, OutcomeTaken)...)
	}
	return nil
}

func (u *updateDecision) applyPolicyToCollisions() error {
	for range predict.CollisionRuleCount() { // leaving an item out may cause another collision
		found := u.prediction.Collisions()
		if len(found) == 0 {
			return nil
		}
		var seen []fieldpath.Path
		for _, col := range found {
			if slices.ContainsFunc(seen, col.Theirs.Equals) {
				continue // the same two items collide in several ways
			}
			seen = append(seen, col.Theirs)
			u.change.Conflicts = append(u.change.Conflicts, u.describeCollision(col, u.policy.outcome())...)
			switch u.policy.outcome() {
			case OutcomeYielded:
				u.prediction.RelinquishItem(col.Relinquishable)
				u.prediction.RelinquishField(col.Theirs)
			case OutcomeTaken:
				u.prediction.RemoveTheirs(col.Theirs)
				u.p.warnings.add(u.t.id, u.t.source, "%s, set by %s, is removed: it %s the chart's %s", fields.String(col.Theirs), managersOf(col.Owners), col.Why, fields.String(col.Ours))
			}
		}
		if u.policy == FailOnConflict {
			return nil
		}
		if err := u.computePrediction(); err != nil {
			return err
		}
	}
	return nil
}

// describeCollision describes a collision, once for each owner of the other manager's item.
func (u *updateDecision) describeCollision(col predict.Collision, outcome FieldOutcome) []FieldConflict {
	var out []FieldConflict
	secret := hide.ConfidentialFields(u.live, u.prediction.Desired, u.t.obj)
	before, after := valueTexts(u.live, &unstructured.Unstructured{}, col.Theirs, secret, u.p.a.opts.Hidden)
	for _, owner := range col.Owners {
		out = append(out, FieldConflict{
			Path: fields.String(col.Theirs), FieldManager: owner,
			Before: before, After: after,
			Outcome: outcome, CollidesWith: fields.String(col.Ours), FieldPath: col.Theirs,
		})
	}
	return out
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
