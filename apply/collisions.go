package apply

import (
	"context"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"deployer/apply/fields"
	"deployer/apply/ownership"
	"deployer/apply/predict"
	"deployer/internal/hide"
)

// decideCollisions decides about collisions as the policy has it, and returns those that are
// refused.
func (u *updateDecision) decideCollisions(ctx context.Context) ([]FieldConflict, error) {
	var refused []FieldConflict
	for range predict.CollisionRuleCount() { // leaving an item out may cause another collision
		found := u.prediction.Collisions()
		if len(found) == 0 {
			return refused, nil
		}
		var seen []fieldpath.Path
		for _, col := range found {
			if slices.ContainsFunc(seen, col.Theirs.Equals) {
				continue // the same two items collide in several ways
			}
			seen = append(seen, col.Theirs)
			list := u.conflictsOf(col)
			u.change.Conflicts = append(u.change.Conflicts, list...)
			switch u.policy {
			case FailOnConflict:
				refused = append(refused, list...)
			case YieldConflicts:
				u.prediction.RelinquishItem(col.Relinquishable)
			default:
				u.prediction.RemoveTheirs(col.Theirs)
				u.p.warnings.add(u.t.id, u.t.source, "%s, set by %s, is removed: it %s the chart's %s", fields.String(col.Theirs), managersOf(col.Owners), col.Why, fields.String(col.Ours))
			}
		}
		if u.policy == FailOnConflict {
			return refused, nil
		}
		if err := u.computePrediction(ctx); err != nil {
			return nil, err
		}
	}
	return refused, nil
}

// conflictsOf describes a collision, once for each owner of the other manager's item.
func (u *updateDecision) conflictsOf(col predict.Collision) []FieldConflict {
	var out []FieldConflict
	secret := hide.ConfidentialFields(u.live, u.prediction.Desired, u.t.obj)
	before, after := shownPair(u.live, nil, col.Theirs, secret, u.p.a.opts.Hidden)
	for _, owner := range col.Owners {
		out = append(out, FieldConflict{
			Path: fields.String(col.Theirs), FieldManager: owner,
			Before: before, After: after,
			Outcome: u.policy.outcome(), CollidesWith: fields.String(col.Ours), path: col.Theirs,
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
