package apply

import (
	"cmp"
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/manifest"
	"deployer/apply/predict"
	"deployer/apply/verify"
	"deployer/internal/kube"
)

// Real charts have Services with two ports of the same number and protocol, one name used
// by the Service, the other by a probe. POST and PUT accept that. Server-side apply can't
// express it, because it identifies list items by their keys. Such an object is computed
// without the later duplicates. Then the chart's lists are inserted and the whole object
// is written by a POST or PUT, which is bound to the observed version. Which fields are
// removed follows from managed fields as usual: our PUT leaves an entry (helm, Update),
// which counts as ours.

// A replacement is why an object isn't applied, but written whole. The zero value is of an object that is applied.
type replacement struct {
	reason     string
	applicable *unstructured.Unstructured // what could be applied of it: it has no items whose keys another one has
}

// isNeeded reports whether the object is written whole.
func (r replacement) isNeeded() bool { return r.applicable != nil }

// replacementOfRepeated returns the replacement of an object in which several items have the same key.
func (p *planning) replacementOfRepeated(ctx context.Context, t *target, res manifest.Result) (replacement, error) {
	if len(res.Duplicates) == 0 {
		return replacement{}, nil
	}
	once, err := p.normaliseBySchema(ctx, t, t.obj, true)
	if err != nil {
		return replacement{}, &ObjectError{ID: t.id, Source: t.source, Doing: "checking", Err: err}
	}
	for _, n := range res.Duplicates {
		p.warnings.add(t.id, t.source, "%s: server-side apply doesn't allow that, so the object is replaced as a whole", n)
	}
	return replacement{"replaced as a whole: " + res.Duplicates[0].String(), once.Object}, nil
}

// creation is the write that creates the object.
func (r replacement) creation() write {
	if r.isNeeded() {
		return write{verb: postObject}
	}
	return write{verb: createObject}
}

// replacementOf returns why an object that is there is written whole.
func (p *planning) replacementOf(t *target, f *facts, known updateFacts) replacement {
	switch {
	case f.replacement.isNeeded():
		return f.replacement
	case storedWithoutManagedFields(f.full):
		p.warnings.add(t.id, t.source, "%s", tooLargeForManagedFields)
		return replacement{tooLargeForManagedFields, f.desired}
	case known.isMisfit && !p.prerequisites.kindChanges(t):
		return replacement{"replaced as a whole: what is stored doesn't fit its definition any more, and can't be applied to", f.desired}
	}
	return replacement{}
}

// prepareFullReplace adds the duplicate items, which an apply can't have, to the predicted object.
func (u *updateDecision) prepareFullReplace() {
	predict.RestoreDuplicates(u.fullDesired.Object, u.replacement.applicable.Object, u.prediction.Predicted.Object)
	desired := u.prediction.Desired.DeepCopy()
	predict.RestoreDuplicates(u.fullDesired.Object, u.replacement.applicable.Object, desired.Object)
	u.change.Desired, u.change.TakenFrom = desired, nil
}

// An object is stored with its managedFields. If both together are too large, the API
// server stores the object without managedFields for POST and PUT, but rejects an apply.
// Such an object is written by POST or PUT.
// k8s.io/apiserver/pkg/endpoints/handlers, isTooLargeError; kubernetes#87508

const tooLargeForManagedFields = "too large to store managed fields: replaced as a whole, without checking for conflicts with other managers"

// leastSizeWithoutManagedFields is the size from which an object without managedFields counts as stored
// without them because of its size. The default limit of an etcd request is 1.5 MiB, and
// managedFields take less than the fields.
// https://etcd.io/docs/latest/dev-guide/limit/
const leastSizeWithoutManagedFields = 512 << 10

// storedWithoutManagedFields reports whether a live object was stored without the owners of its
// fields because of its size.
func storedWithoutManagedFields(live *unstructured.Unstructured) bool {
	if len(live.GetManagedFields()) > 0 {
		return false
	}
	data, err := json.Marshal(live.Object)
	return err == nil && len(data) >= leastSizeWithoutManagedFields
}

// writeLarge writes a whole object after its apply was refused as too large.
func (r *changeRun) writeLarge(ctx context.Context, c Change, w write, how mode, refusal error) (Change, error) {
	var err error
	switch {
	case w.verb == createObject:
		c.Applied, err = r.a.post(ctx, r.t, c.Desired, how)
	case c.Predicted == nil || c.Live == nil:
		return c, refusal // there is no predicted object to write
	default:
		body := kube.ShallowCopy(c.Predicted)
		unstructured.RemoveNestedField(body.Object, "metadata", "managedFields")
		body.SetUID(w.precondition.uid)
		body.SetResourceVersion(cmp.Or(w.precondition.resourceVersion, c.Live.GetResourceVersion()))
		c.Applied, err = r.a.put(ctx, r.t, body, how)
	}
	if verify.Read(err).Detail == verify.TooLarge {
		err = refusal
	}
	c.Warning = tooLargeForManagedFields
	return c, err
}
