package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func isHook(obj *unstructured.Unstructured) bool {
	_, ok := obj.GetAnnotations()[hookAnnotation]
	return ok
}

// https://helm.sh/docs/topics/charts_hooks/
const (
	hookAnnotation   = "helm.sh/hook"
	hookDeletePolicy = "helm.sh/hook-delete-policy"
)
