package deploy

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/chart"
	"deployer/internal/kube"
)

// replaceRemovedAPIs writes what op is to deploy in the API versions that took the place of
// those that the cluster has removed, if that is wanted, and warns of each. It
// is what will be recorded: the next rollback finds versions that are served.
func (d *Deployer) replaceRemovedAPIs(ctx context.Context, op *Operation) {
	if !d.Settings.MapRemovedAPIs {
		return
	}
	newer := func(obj *unstructured.Unstructured) string {
		next := kube.ReplacementAPI(obj)
		if next == "" || !d.isRemoved(ctx, obj.GroupVersionKind()) || d.isRemoved(ctx, schema.FromAPIVersionAndKind(next, obj.GetKind())) {
			return ""
		}
		return next
	}
	var changes []string
	op.Next.Manifest, changes = chart.ReplaceAPIVersions(op.Next.Manifest, newer)
	op.Warnings = append(op.Warnings, changes...)
	for _, h := range op.Next.Hooks {
		h.Manifest, changes = chart.ReplaceAPIVersions(h.Manifest, newer)
		op.Warnings = append(op.Warnings, changes...)
	}
}

// isRemoved says that the cluster certainly doesn't serve a kind.
func (d *Deployer) isRemoved(ctx context.Context, gvk schema.GroupVersionKind) bool {
	_, err := d.Cluster.Mapping(ctx, gvk, false)
	return errors.As(err, new(*kube.NoKindMatchError))
}
