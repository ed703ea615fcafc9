package deploy

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/chart"
	"deployer/internal/kube"
)

// renew writes what op is to deploy in the API versions that took the place of
// those that the cluster has removed, if that is wanted, and warns of each. It
// is what will be recorded: the next rollback finds versions that are served.
func (d *Deployer) renew(ctx context.Context, op *Operation) {
	if !d.Settings.MapRemovedAPIs {
		return
	}
	newer := func(obj *unstructured.Unstructured) string {
		next := kube.Successor(obj)
		if next == "" || !d.removed(ctx, obj.GroupVersionKind()) || d.removed(ctx, schema.FromAPIVersionAndKind(next, obj.GetKind())) {
			return ""
		}
		return next
	}
	var changes []string
	op.Next.Manifest, changes = chart.Renewed(op.Next.Manifest, newer)
	op.Warnings = append(op.Warnings, changes...)
	for _, h := range op.Next.Hooks {
		h.Manifest, changes = chart.Renewed(h.Manifest, newer)
		op.Warnings = append(op.Warnings, changes...)
	}
}

// removed says that the cluster certainly doesn't serve a kind.
func (d *Deployer) removed(ctx context.Context, gvk schema.GroupVersionKind) bool {
	_, err := d.Cluster.Mapping(ctx, gvk, false)
	return errors.As(err, new(*kube.NoKindError))
}
