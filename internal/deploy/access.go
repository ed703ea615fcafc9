package deploy

import (
	"cmp"
	"context"
	"errors"

	"golang.org/x/sync/errgroup"
	helmrelease "helm.sh/helm/v3/pkg/release"
	authorizationv1 "k8s.io/api/authorization/v1"

	"deployer/apply"
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
	requests := verbs[op.Verb].requests
	denied := make([]error, len(requests))
	applier := d.newApplier(op)
	var questions errgroup.Group
	for i, verb := range requests {
		if verb == "delete" && op.Removal.KeepHistory {
			continue
		}
		questions.Go(func() (err error) {
			what := authorizationv1.ResourceAttributes{Verb: verb, Resource: "secrets", Namespace: d.Namespace}
			if verb != "create" { // the API server decides about that before it knows the name
				what.Name = release.SecretName(op.Release, op.Next.Version)
			}
			denied[i], err = checkAccess(ctx, applier, what)
			return err
		})
	}
	err := questions.Wait()
	op.denied = errors.Join(append(denied, op.denied)...)
	return err
}

// checkTestAccess notes which tests the account may not create: a plan would ask for a dry run,
// but tests have none.
func (d *Deployer) checkTestAccess(ctx context.Context, op *Operation, tests []*helmrelease.Hook) error {
	applier := d.newApplier(op)
	manifests, _ := objectsOfHooks(tests) // an unusable hook fails when its turn comes, as with Helm
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
		denied, err := checkAccess(ctx, applier, what)
		if err != nil {
			return err
		}
		op.denied = errors.Join(op.denied, denied)
	}
	return nil
}

// checkAccess asks whether the account may make a request. It returns a *verify.PermissionError as
// denied if it may not.
func checkAccess(ctx context.Context, a *apply.Applier, what authorizationv1.ResourceAttributes) (denied, err error) {
	allowed, err := a.MayRequest(ctx, what)
	if err != nil || allowed {
		return nil, err
	}
	return &verify.PermissionError{Verb: what.Verb, Group: what.Group, Resource: what.Resource, Namespace: what.Namespace}, nil
}
