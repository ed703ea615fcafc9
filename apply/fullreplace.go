package apply

import (
	"context"

	"deployer/apply/manifest"
	"deployer/apply/predict"
)

// Real charts have Services with two ports of the same number and protocol, one name used
// by the Service, the other by a probe. POST and PUT accept that. Server-side apply can't
// express it, because it identifies list items by their keys. Such an object is computed
// without the later duplicates. Then the chart's lists are inserted and the whole object
// is written by a POST or PUT, which is bound to the observed version. Which fields are
// removed follows from managed fields as usual: our PUT leaves an entry (helm, Update),
// which counts as ours.

// decideFullReplace decides whether an object is written whole because items of it have the same key.
func (r *predictor) decideFullReplace(ctx context.Context, t *target, res manifest.Result) error {
	t.fullReplace = fullReplacement{}
	if len(res.Duplicates) == 0 {
		return nil
	}
	once, err := r.normaliseBySchema(ctx, t, t.obj, true)
	if err != nil {
		return &ObjectError{ID: t.id, Source: t.source, Doing: "checking", Err: err}
	}
	t.fullReplace.withoutDuplicates = once.Object
	for _, n := range res.Duplicates {
		r.warnings.add(t.id, t.source, "%s: server-side apply doesn't allow that, so the object is replaced as a whole", n)
	}
	t.fullReplace.reason = "replaced as a whole: " + res.Duplicates[0].String()
	return nil
}

// prepareFullReplace makes of what an apply would come to what is to be written.
func (u *updateDecision) prepareFullReplace() {
	predict.RestoreDuplicates(u.fullDesired.Object, u.t.fullReplace.withoutDuplicates.Object, u.prediction.Predicted.Object)
	desired := u.prediction.Desired.DeepCopy()
	predict.RestoreDuplicates(u.fullDesired.Object, u.t.fullReplace.withoutDuplicates.Object, desired.Object)
	u.change.Desired, u.change.TakenFrom = desired, nil
}
