package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/compare"
	"deployer/apply/provenance"
	"deployer/apply/verify"
	"deployer/internal/kube"
)

// giveBack restores an object to its state before it was adopted: its ownership metadata,
// the values that we overwrote and that are still ours, and the owners of its fields. One
// request does all of that, bound to the observed version. A second one removes the
// managedFields entry that the first has created.
func (r *changeRun) giveBack(ctx context.Context, c Change) (Change, error) {
	t, restored, err := r.p.beginRestoration(ctx, c)
	if err != nil || restored == nil {
		return c, err
	}
	err = r.a.restore(ctx, t, restored, asWrite)
	if apierrors.IsNotFound(err) {
		err = r.a.cluster.ConfirmAbsent(ctx, t.mapping, err)
	}
	if c.Reason = c.Provenance.WhyGivenBack(); err == nil && len(restored.Stays) > 0 { // a warning tells what stays
		c.Warning = "given back, but not completely: " + strings.Join(restored.Stays, "; ")
	}
	return c, err
}

// prepareGivingBack says in a plan which fields change when an object is given back, and which stay.
func (p *planning) prepareGivingBack(ctx context.Context, c *Change) error {
	t, r, err := p.beginRestoration(ctx, *c)
	if kube.IsConflict(err) || err == nil && r == nil {
		return nil // it has just changed: the run decides again
	}
	if err != nil {
		return &ObjectError{ID: c.ID, Source: c.Source, Doing: "reading", Err: err}
	}
	p.a.opts.Hidden.AddObject(t.obj)
	if err := p.a.restore(ctx, t, r, asDryRun); err != nil {
		c.Unverified = verify.AsServerError(t.obj, err).Error()
	}
	if len(r.Stays) > 0 {
		c.Reason += "; not completely: " + strings.Join(r.Stays, "; ")
	}
	conv, _, err := p.schemas.of(ctx, t.mapping.GVK)
	if err != nil {
		return &ObjectError{ID: c.ID, Source: c.Source, Doing: "comparing", Err: err}
	}
	c.Live, c.Predicted = t.obj, r.Becomes
	if c.Fields, err = compare.Fields(conv, compare.States{Before: c.Live, After: c.Predicted}); err != nil {
		c.Fields = nil // it doesn't fit its schema: only its ownership metadata are restored
	}
	return nil
}

// beginRestoration reads an object that is given back, and computes what it becomes. There is nothing to restore if
// it is gone, or replaced by an object that isn't ours.
func (p *planning) beginRestoration(ctx context.Context, c Change) (*target, *provenance.Restoration, error) {
	mapping, err := p.mappingOfPrior(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	live, err := p.a.get(ctx, mapping, c.ID)
	if err != nil || live == nil || !c.Provenance.Describes(live) {
		return nil, nil, err
	}
	if provenance.OwnerOf(live) != provenance.OwnerOf(c.Live) {
		return nil, nil, apierrors.NewConflict(mapping.Resource.GroupResource(), c.ID.Name, errors.New("its owner has changed")) // decide again
	}
	r, err := provenance.NewRestoration(c.Provenance, live, c.orphan.Declared)
	if err != nil {
		return nil, nil, err
	}
	conv, _, err := p.schemas.of(ctx, mapping.GVK)
	if err == nil {
		err = r.Compute(conv)
	}
	if err != nil {
		r.OnlyOwnershipMetadata(err)
	}
	return &target{id: kube.IDOf(live), mapping: mapping, obj: live}, r, nil // warnings hide what live has confidential
}

// restore makes the restored object of the live one.
func (a *Applier) restore(ctx context.Context, t *target, r *provenance.Restoration, m mode) error {
	err := a.writeRestored(ctx, t, r, m)
	if apierrors.IsForbidden(err) {
		err = a.writeRestored(ctx, t, r, m) // retried once: what isn't given back now is never given back
	}
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) && verify.MissingPermission(err, t.id.Namespace) == nil {
		// Not every former value is accepted: volumes can't shrink, or a policy rejects
		// it.
		r.OnlyOwnershipMetadata(verify.AsServerError(t.obj, err))
		err = a.writeRestored(ctx, t, r, m)
	}
	return err
}

// mappingOfPrior is how an object that is given back is addressed: in the API version of its recorded
// values if that is still served, otherwise in its own.
func (p *planning) mappingOfPrior(ctx context.Context, c Change) (kube.Mapping, error) {
	values, err := c.Provenance.Adopted.Prior.Object()
	if err != nil {
		return kube.Mapping{}, fmt.Errorf("reading its recorded former state: %w", err)
	}
	if values != nil {
		if m, err := p.a.cluster.Mapping(ctx, values.GroupVersionKind(), false); err == nil {
			return m, nil
		}
	}
	return p.mappingOf(ctx, c), nil
}

// writeRestored makes the requests that make the restored object of the live one.
func (a *Applier) writeRestored(ctx context.Context, t *target, r *provenance.Restoration, m mode) error {
	owners, err := r.ManagedFields()
	if err != nil {
		return err
	}
	ops := jsonPatchOf("", compare.WithoutServerMetadata(t.obj), compare.WithoutServerMetadata(r.Becomes))
	result, err := a.sendJSONPatch(ctx, t, t.obj.GetResourceVersion(), append(ops, managedFieldsOperation(owners)), m)
	if err != nil || m.isDryRun || !r.StillOurs(result) {
		return err
	}
	return a.removeOurEntry(ctx, t, result, r)
}

// removeOurEntry removes the managedFields entry that restoring the values has created, so that their former
// managers own them again. If a controller writes the object in between, it is read again.
func (a *Applier) removeOurEntry(ctx context.Context, t *target, result *unstructured.Unstructured, r *provenance.Restoration) error {
	owner := provenance.OwnerOf(r.Becomes)
	for attempt := range maxAttempts {
		owners, err := r.ManagedFieldsAfter(result)
		if err != nil {
			return err
		}
		_, err = a.sendJSONPatch(ctx, t, result.GetResourceVersion(), []patchOperation{managedFieldsOperation(owners)}, asWrite)
		if !kube.IsConflict(err) {
			return err
		}
		pauseAfterRace(ctx, attempt)
		if result, err = a.get(ctx, t.mapping, t.id); err != nil {
			return err
		}
		if result == nil || result.GetUID() != t.obj.GetUID() || provenance.OwnerOf(result) != owner || !r.StillOurs(result) {
			return nil // it was replaced or has changed hands, or the entry is gone
		}
	}
	return nil // its content is given back, and another client keeps writing it
}

// managedFieldsOperation replaces the managedFields of an object.
func managedFieldsOperation(owners []metav1.ManagedFieldsEntry) patchOperation {
	return patchOperation{"add", "/metadata/managedFields", owners}
}
