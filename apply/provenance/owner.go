package provenance

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"deployer/internal/kube"
)

// The ownership metadata that Helm writes on the objects of a release.
// helm.sh/helm/v3/pkg/action/validate.go
const (
	managedByLabel   = "app.kubernetes.io/managed-by"
	managedBy        = "Helm"
	releaseName      = kube.ReleaseNameAnnotation
	releaseNamespace = "meta.helm.sh/release-namespace"
)

// Owner is the release on whose behalf objects are applied. It is written on
// every object exactly as Helm writes it: label app.kubernetes.io/managed-by=Helm,
// annotations meta.helm.sh/release-name and meta.helm.sh/release-namespace.
// Objects of a namespaced kind that name no namespace belong to Namespace.
type Owner struct{ Release, Namespace string }

// String gives namespace/release.
func (o Owner) String() string { return o.Namespace + "/" + o.Release }

// SetOn writes the ownership on an object.
func (o Owner) SetOn(obj *unstructured.Unstructured) {
	restoreOwnershipMetadata(obj, map[string]string{managedByLabel: managedBy, releaseName: o.Release, releaseNamespace: o.Namespace})
}

// OwnerOf returns the release that an object belongs to; the empty Owner for none.
func OwnerOf(obj metav1.Object) Owner {
	a := obj.GetAnnotations()
	return Owner{Release: a[releaseName], Namespace: a[releaseNamespace]}
}

// Mismatch says, in the words of Helm's checkOwnership, what an object of another owner lacks to be
// o's; empty when it lacks nothing.
func (o Owner) Mismatch(live metav1.Object) string {
	var errs []string
	check := func(what, key, got, want string) {
		switch got {
		case want:
		case "":
			errs = append(errs, fmt.Sprintf("%s validation error: missing key %q: must be set to %q", what, key, want))
		default:
			errs = append(errs, fmt.Sprintf("%s validation error: key %q must equal %q: current value is %q", what, key, want, got))
		}
	}
	check("label", managedByLabel, live.GetLabels()[managedByLabel], managedBy)
	check("annotation", releaseName, live.GetAnnotations()[releaseName], o.Release)
	check("annotation", releaseNamespace, live.GetAnnotations()[releaseNamespace], o.Namespace)
	return strings.Join(errs, "; ")
}

// ManagedByHelmSelector selects the objects that bear Helm's label.
const ManagedByHelmSelector = managedByLabel + "=" + managedBy

// ownershipMetadata returns the ownership label and annotations of an object, whatever their
// values.
func ownershipMetadata(obj metav1.Object) map[string]string {
	out := map[string]string{}
	if v, ok := obj.GetLabels()[managedByLabel]; ok {
		out[managedByLabel] = v
	}
	for _, key := range []string{releaseName, releaseNamespace} {
		if v, ok := obj.GetAnnotations()[key]; ok {
			out[key] = v
		}
	}
	return out
}

// restoreOwnershipMetadata restores the ownership label and annotations of an object.
func restoreOwnershipMetadata(obj *unstructured.Unstructured, metadata map[string]string) {
	set := func(values map[string]string, keys ...string) map[string]string {
		for _, key := range keys {
			delete(values, key)
			if v, ok := metadata[key]; ok {
				if values == nil {
					values = map[string]string{}
				}
				values[key] = v
			}
		}
		return values
	}
	obj.SetLabels(set(obj.GetLabels(), managedByLabel))
	obj.SetAnnotations(set(obj.GetAnnotations(), releaseName, releaseNamespace))
}

// ownershipMetadataPaths are the paths of Prior.OwnershipMetadata.
func ownershipMetadataPaths() *fieldpath.Set {
	return fieldpath.NewSet(
		fieldpath.MakePathOrDie("metadata", "labels", managedByLabel),
		fieldpath.MakePathOrDie("metadata", "annotations", releaseName),
		fieldpath.MakePathOrDie("metadata", "annotations", releaseNamespace),
	)
}
