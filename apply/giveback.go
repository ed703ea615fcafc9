package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"deployer/apply/compare"
	"deployer/apply/provenance"
	"deployer/apply/verify"
)

// giveBack restores an object to its state before it was adopted: its ownership metadata,
// the values that we overwrote and that are still ours, and the owners of its fields. One
// request does all of that, bound to the observed version. A second one removes the
// managedFields entry that the first has created.
func (a *Applier) giveBack(ctx context.Context, c Change) (Change, error) {
	t, err := a.readAdopted(ctx, c)
	if err != nil || t.obj == nil || !c.Provenance.Describes(t.obj) {
		return c, err // gone, or replaced by an object that isn't ours
	}
	if provenance.OwnerOf(t.obj) != provenance.OwnerOf(c.Live) {
		return c, apierrors.NewConflict(t.mapping.Resource.GroupResource(), c.ID.Name, errors.New("its owner has changed")) // decide again
	}
	r, err := provenance.NewRestoration(c.Provenance, t.obj, c.execution.orphan.lastDeclared.obj)
	if err != nil {
		return c, err
	}
	conv, _, err := c.execution.p.schemas.of(ctx, t.mapping.GVK)
	if err == nil {
		err = r.Compute(conv)
	}
	if err != nil {
		r.OnlyOwnershipMetadata(err)
	}
	err = a.writeRestored(ctx, t, r)
	if apierrors.IsForbidden(err) {
		err = a.writeRestored(ctx, t, r) // retried once: what isn't given back now is never given back
	}
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
		// Not every former value is accepted: volumes can't shrink, or a policy rejects
		// it.
		r.OnlyOwnershipMetadata(verify.Explain(t.obj, err))
		err = a.writeRestored(ctx, t, r)
	}
	if apierrors.IsNotFound(err) {
		err = a.cluster.ConfirmAbsent(ctx, t.mapping, err)
	}
	if err == nil && len(r.Stays) > 0 {
		c.Warning = "given back, but not completely: " + strings.Join(r.Stays, "; ")
	}
	return c, err
}

// readAdopted reads an object that is given back, in the API version of its recorded values if
// that is still served. The object of the target is the live one; nil if that is gone.
func (a *Applier) readAdopted(ctx context.Context, c Change) (*target, error) {
	t := &target{id: c.ID, mapping: c.execution.mapping(ctx)}
	values, err := c.Provenance.Adopted.Prior.Object()
	if err != nil {
		return nil, fmt.Errorf("reading its recorded former state: %w", err)
	}
	if values != nil {
		if m, err := a.cluster.Mapping(ctx, values.GroupVersionKind(), false); err == nil {
			t.mapping = m
		}
	}
	t.obj, err = a.get(ctx, t.mapping, t.id)
	return t, err
}

// writeRestored makes the requests.
func (a *Applier) writeRestored(ctx context.Context, t *target, r *provenance.Restoration) error {
	owners, err := r.ManagedFields()
	if err != nil {
		return err
	}
	set := patchOperation{"add", "/metadata/managedFields", owners}
	ops := jsonPatchOf("", compare.Content(t.obj), compare.Content(r.Becomes))
	result, err := a.sendJSONPatch(ctx, t, t.obj.GetResourceVersion(), append(ops, set), asWrite)
	if err != nil || !r.StillOurs(result) {
		return err
	}
	_, err = a.sendJSONPatch(ctx, t, result.GetResourceVersion(), []patchOperation{set}, asWrite)
	if apierrors.IsConflict(err) {
		return nil // somebody else has written it in the meantime: it is given back
	}
	return err
}
