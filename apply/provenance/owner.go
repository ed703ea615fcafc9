package provenance

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"deployer/apply/ownership"
	"deployer/internal/kube"
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
	restoreOwnershipMetadata(obj, map[string]string{kube.ManagedByLabel: kube.ManagedByHelm, kube.ReleaseNameAnnotation: o.Release, kube.ReleaseNamespaceAnnotation: o.Namespace})
}

// OwnerOf returns the release that an object belongs to; the empty Owner for none.
func OwnerOf(obj metav1.Object) Owner {
	a := obj.GetAnnotations()
	return Owner{Release: a[kube.ReleaseNameAnnotation], Namespace: a[kube.ReleaseNamespaceAnnotation]}
}

// IsNobodys reports whether an object bears no mark of an owner: of a release, of another tool, or of another object.
func IsNobodys(obj metav1.Object) bool {
	manager := obj.GetLabels()[kube.ManagedByLabel]
	return OwnerOf(obj) == (Owner{}) && (manager == "" || manager == kube.ManagedByHelm) && len(obj.GetOwnerReferences()) == 0 &&
		!slices.ContainsFunc(toolMarks, func(mark string) bool { return obj.GetLabels()[mark] != "" || obj.GetAnnotations()[mark] != "" }) &&
		!slices.ContainsFunc(obj.GetManagedFields(), ownership.IsAppliedByOthers)
}

// toolMarks are labels and annotations by which tools that also deploy Helm's charts know their objects.
// https://argo-cd.readthedocs.io/en/stable/user-guide/resource_tracking/, https://fluxcd.io/flux/components/, https://carvel.dev/kapp/docs/develop/diff/
var toolMarks = []string{
	"argocd.argoproj.io/tracking-id", "argocd.argoproj.io/instance", "kustomize.toolkit.fluxcd.io/name", "helm.toolkit.fluxcd.io/name", "kapp.k14s.io/app",
}

// IsHalfOn reports whether an object has only one of the annotations of the release: somebody has begun to adopt it by hand, or has
// removed the other one.
func (o Owner) IsHalfOn(obj metav1.Object) bool {
	owner := OwnerOf(obj)
	return owner == (Owner{Release: o.Release}) || owner == (Owner{Namespace: o.Namespace})
}

// OwnerOf is the function of this name, but for an object that is only half on o: that belongs to none.
func (o Owner) OwnerOf(obj metav1.Object) Owner {
	if o.IsHalfOn(obj) {
		return Owner{}
	}
	return OwnerOf(obj)
}

// IsRemade reports whether somebody has made an object of ours anew, without ownership. One with fields of a program that may
// have written for a release was taken out of it, and of one without managed fields nobody knows.
func IsRemade(obj metav1.Object) bool {
	return IsNobodys(obj) && len(obj.GetManagedFields()) > 0 && !slices.ContainsFunc(obj.GetManagedFields(), ownership.MayBeOfHelm)
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
	check("label", kube.ManagedByLabel, live.GetLabels()[kube.ManagedByLabel], kube.ManagedByHelm)
	check("annotation", kube.ReleaseNameAnnotation, live.GetAnnotations()[kube.ReleaseNameAnnotation], o.Release)
	check("annotation", kube.ReleaseNamespaceAnnotation, live.GetAnnotations()[kube.ReleaseNamespaceAnnotation], o.Namespace)
	return strings.Join(errs, "; ")
}

// ManagedByHelmSelector selects the objects that bear Helm's label.
const ManagedByHelmSelector = kube.ManagedByLabel + "=" + kube.ManagedByHelm

// ownershipMetadata returns the ownership label and annotations of an object, whatever their
// values.
func ownershipMetadata(obj metav1.Object) map[string]string {
	out := map[string]string{}
	if v, ok := obj.GetLabels()[kube.ManagedByLabel]; ok {
		out[kube.ManagedByLabel] = v
	}
	for _, key := range []string{kube.ReleaseNameAnnotation, kube.ReleaseNamespaceAnnotation} {
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
	obj.SetLabels(set(obj.GetLabels(), kube.ManagedByLabel))
	obj.SetAnnotations(set(obj.GetAnnotations(), kube.ReleaseNameAnnotation, kube.ReleaseNamespaceAnnotation))
}

// IsOwnershipMetadata reports whether a field is the ownership label or one of the annotations.
func IsOwnershipMetadata(path fieldpath.Path) bool { return ownershipMetadataPaths().Has(path) }

// ownershipMetadataPaths are the paths of Prior.OwnershipMetadata.
func ownershipMetadataPaths() *fieldpath.Set {
	return fieldpath.NewSet(
		fieldpath.MakePathOrDie("metadata", "labels", kube.ManagedByLabel),
		fieldpath.MakePathOrDie("metadata", "annotations", kube.ReleaseNameAnnotation),
		fieldpath.MakePathOrDie("metadata", "annotations", kube.ReleaseNamespaceAnnotation),
	)
}
