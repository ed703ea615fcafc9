package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"deployer/apply/fields"
	"deployer/apply/predict"
	"deployer/apply/verify"
	"deployer/internal/annotation"
	"deployer/internal/hide"
)

// conflictPolicyOf returns the conflict policy of an object: its annotation's, or else the
// option's.
func (o Options) conflictPolicyOf(t *target) (ConflictPolicy, error) {
	word, stated, errs := annotation.Conflicts.Read(t.obj.GetAnnotations())
	switch {
	case len(errs) > 0 && !o.refuseNothing:
		return "", rejectf(t.id, t.source, "metadata.annotations["+errs[0].Name+"]", "use take, fail or yield", "%v", errs[0].Err)
	case !stated, o.refuseNothing && word == string(FailOnConflict):
		return o.Conflicts, nil
	}
	return ConflictPolicy(word), nil
}

// decideConflicts decides about the fields that other managers set to other values, and
// returns the refused ones.
func (p *planning) decideConflicts(t *target, prediction *predict.Prediction, c *Change, policy ConflictPolicy) ([]FieldConflict, error) {
	conflicts, err := prediction.Conflicts()
	if err != nil {
		return nil, t.reject(&InvalidError{Text: verify.Conceal(t.obj, err.Error())})
	}
	var refused []FieldConflict
	for _, con := range conflicts {
		f := conflictOf(t, con, c.Live, prediction.Desired)
		f.Before, f.After = p.a.opts.Hidden.HideTextPair(f.Before, f.After)
		f.Outcome = policy.outcome()
		switch policy {
		case FailOnConflict:
			refused = append(refused, f)
		case YieldConflicts:
			prediction.RelinquishField(con.Path)
		default:
			if con.Repeated {
				p.warnings.add(t.id, t.source, "%s changed %s since the last release and may change it again: leave it out of the chart, or annotate the object with %s: yield",
					con.By.Manager, f.Path, annotation.Conflicts.Name)
			}
		}
		c.Conflicts = append(c.Conflicts, f)
	}
	return refused, nil
}

func conflictOf(t *target, con predict.Conflict, live, desired *unstructured.Unstructured) FieldConflict {
	f := FieldConflict{
		Path:  fields.String(con.Path),
		Owner: con.By.Owner(),
		path:  con.Path,
	}
	secret := hide.ConfidentialFields(live, desired, t.obj)
	f.Path = secret.HidePath(f.Path, nil)
	f.Before, f.After = shown(live, con.Path, secret), shown(desired, con.Path, secret)
	return f
}

// shown writes a value for people, unless it is confidential.
func shown(obj *unstructured.Unstructured, path fieldpath.Path, secret hide.Fields) string {
	v, ok := fields.Value(obj.Object, path)
	if ok && secret.HasHiddenWithin(fields.Names(path)) {
		return "(hidden)"
	}
	return fields.Text(v, ok)
}
