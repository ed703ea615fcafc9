package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	helmrelease "helm.sh/helm/v3/pkg/release"
	authorizationv1 "k8s.io/api/authorization/v1"

	"deployer/apply/verify"
	"deployer/release"
)

// CheckPermissions reports whether the account may carry the operation out, as far as deciding has
// met the limits of its permissions. Call it before the first change.
func (o *Operation) CheckPermissions() error {
	err := o.denied
	if o.Plan != nil {
		err = errors.Join(o.Plan.CheckPermissions(), err)
	}
	return err
}

// checkRecordAccess notes in the operation which of the verbs the account may not use for records,
// because they are needed when everything else is done.
func (d *Deployer) checkRecordAccess(ctx context.Context, op *Operation, verbs ...string) error {
	for _, verb := range verbs {
		what := authorizationv1.ResourceAttributes{Verb: verb, Resource: "secrets", Namespace: d.Namespace}
		if err := d.checkAccess(ctx, op, what, release.SecretName(op.Release, op.Next.Version)); err != nil {
			return err
		}
	}
	return nil
}

// checkTestAccess notes which tests the account may not create: a plan would ask for a dry run,
// but tests have none.
func (d *Deployer) checkTestAccess(ctx context.Context, op *Operation, tests []*helmrelease.Hook) error {
	manifests, _ := objectsOfHooks(tests) // what is unusable fails when its turn comes, as with Helm
	for _, m := range manifests {
		mapping, err := d.Cluster.Mapping(ctx, m.Object.GroupVersionKind(), true)
		if err != nil {
			continue // fails when its turn comes
		}
		namespace := ""
		if mapping.Namespaced {
			namespace = cmp.Or(m.Object.GetNamespace(), d.Namespace)
		}
		what := authorizationv1.ResourceAttributes{Verb: "create", Group: mapping.Resource.Group, Resource: mapping.Resource.Resource, Namespace: namespace}
		if err := d.checkAccess(ctx, op, what, ""); err != nil {
			return err
		}
	}
	return nil
}

// checkAccess notes in the operation that the account may not make a request, about all objects or
// about the one of a name.
func (d *Deployer) checkAccess(ctx context.Context, op *Operation, what authorizationv1.ResourceAttributes, name string) error {
	allowed, err := d.Cluster.MayRequest(ctx, what)
	if err == nil && !allowed && name != "" {
		byName := what
		byName.Name = name
		allowed, err = d.Cluster.MayRequest(ctx, byName)
	}
	if err != nil {
		return fmt.Errorf("checking the permissions of the account: %w", err)
	}
	if !allowed {
		op.denied = errors.Join(op.denied, &verify.PermissionError{Verb: what.Verb, Group: what.Group, Resource: what.Resource, Namespace: what.Namespace})
	}
	return nil
}
