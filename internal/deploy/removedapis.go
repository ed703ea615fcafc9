package deploy

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/chart"
	"deployer/internal/kube"
)

// replaceRemovedAPIs replaces API versions that the cluster has removed in the manifest
// and hooks of op, if the settings say so, and warns of each. The result is recorded, so
// that the next rollback has served versions.
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
