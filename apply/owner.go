package apply

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The ownership metadata that Helm writes on the objects of a release.
// helm.sh/helm/v3/pkg/action/validate.go
const (
	managedByLabel      = "app.kubernetes.io/managed-by"
	managedBy           = "Helm"
	releaseName         = "meta.helm.sh/release-name"
	releaseNamespace    = "meta.helm.sh/release-namespace"
	managedByHelmFilter = managedByLabel + "=" + managedBy
)

// setOwnershipMetadata writes our ownership on obj.
func (o Owner) setOwnershipMetadata(obj *unstructured.Unstructured) {
	restoreOwnershipMetadata(obj, map[string]string{managedByLabel: managedBy, releaseName: o.Release, releaseNamespace: o.Namespace})
}

// ownerOf returns the release that an object belongs to; the empty Owner for none.
func ownerOf(obj metav1.Object) Owner {
	a := obj.GetAnnotations()
	return Owner{Release: a[releaseName], Namespace: a[releaseNamespace]}
}

func ownershipText(us Owner, live *unstructured.Unstructured) string {
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
	check("annotation", releaseName, live.GetAnnotations()[releaseName], us.Release)
	check("annotation", releaseNamespace, live.GetAnnotations()[releaseNamespace], us.Namespace)
	return strings.Join(errs, "; ")
}

func isHook(obj *unstructured.Unstructured) bool {
	_, ok := obj.GetAnnotations()[hookAnnotation]
	return ok
}

// https://helm.sh/docs/topics/charts_hooks/
const (
	hookAnnotation   = "helm.sh/hook"
	hookDeletePolicy = "helm.sh/hook-delete-policy"
)
