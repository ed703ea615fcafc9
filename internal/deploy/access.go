package deploy

import (
	"cmp"
	"context"
	"errors"

	"golang.org/x/sync/errgroup"
	helmrelease "helm.sh/helm/v3/pkg/release"
	authorizationv1 "k8s.io/api/authorization/v1"

	"deployer/apply/verify"
	"deployer/release"
)

// CheckPermissions returns an error if the account lacks a permission that the operation needs, as far as
// deciding has found that out. Call it before the first change.
func (o *Operation) CheckPermissions() error {
	err := refusal(o.denied)
	if o.Plan != nil {
		err = errors.Join(o.Plan.CheckPermissions(), err)
	}
	return err
}

// checkRecordAccess notes in the operation which permissions for records are missing. Changes without a
// record would be found by nobody. An undo goes as far as it can, and an operation that is only shown needs none.
func (d *Deployer) checkRecordAccess(ctx context.Context, op *Operation) error {
	if op.undoes != nil || d.ForShow {
		return nil
	}
	var needed []authorizationv1.ResourceAttributes
	for _, verb := range verbs[op.Verb].requests {
		what := authorizationv1.ResourceAttributes{Verb: verb, Resource: "secrets", Namespace: d.Namespace}
		if verb != "create" { // the API server decides about that before it knows the name
			what.Name = release.SecretName(op.Release, op.Next.Version)
		}
		if verb != "delete" || !op.Removal.KeepHistory {
			needed = append(needed, what)
		}
	}
	return d.noteDenied(ctx, op, needed)
}

// checkTestAccess notes which tests the account may not create: a plan would ask for a dry run,
// but tests have none.
func (d *Deployer) checkTestAccess(ctx context.Context, op *Operation, tests []*helmrelease.Hook) error {
	var needed []authorizationv1.ResourceAttributes
	manifests, _ := objectsOfHooks(tests) // an unusable hook fails when its turn comes, as with Helm
	for _, m := range manifests {
		mapping, err := d.Cluster.Mapping(ctx, m.Object.GroupVersionKind(), true)
		if err != nil {
			continue // fails when its turn comes
		}
		what := authorizationv1.ResourceAttributes{Verb: "create", Group: mapping.Resource.Group, Resource: mapping.Resource.Resource}
		if mapping.Namespaced {
			what.Namespace = cmp.Or(m.Object.GetNamespace(), d.Namespace)
		}
		needed = append(needed, what)
	}
	return d.noteDenied(ctx, op, needed)
}

// noteDenied notes in the operation which requests the account may not make.
func (d *Deployer) noteDenied(ctx context.Context, op *Operation, needed []authorizationv1.ResourceAttributes) error {
	applier := d.newApplier(op)
	denied := make([]error, len(needed))
	var questions errgroup.Group
	for i, what := range needed {
		questions.Go(func() error {
			allowed, err := applier.MayRequest(ctx, what)
			if err == nil && !allowed {
				denied[i] = &verify.PermissionError{Verb: what.Verb, Group: what.Group, Resource: what.Resource, Namespace: what.Namespace}
			}
			return err
		})
	}
	err := questions.Wait()
	op.denied = errors.Join(append([]error{op.denied}, denied...)...)
	return err
}
