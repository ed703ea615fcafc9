package decide

import (
	"slices"
	"strings"
)

// KeepAnnotation is Helm's annotation that keeps an object when its release drops it.
const KeepAnnotation = "helm.sh/resource-policy"

// IsKept reads helm.sh/resource-policy as Helm does.
// helm.sh/helm/v3/pkg/action/resource_policy.go
func IsKept(annotations map[string]string) bool { return resourcePolicy(annotations) == "keep" }

// HasUnknownPolicy reports whether an object has a resource policy that Helm doesn't
// know. It may be a misspelt keep, so the object isn't deleted.
func HasUnknownPolicy(annotations map[string]string) bool {
	return !slices.Contains([]string{"", "keep", "delete"}, resourcePolicy(annotations))
}

func resourcePolicy(annotations map[string]string) string {
	return strings.ToLower(strings.TrimSpace(annotations[KeepAnnotation]))
}
