package apply

import (
	"strings"
)

// keeps reads helm.sh/resource-policy as Helm does.
// helm.sh/helm/v3/pkg/action/resource_policy.go
func keeps(annotations map[string]string) bool { return resourcePolicy(annotations) == "keep" }

func resourcePolicy(annotations map[string]string) string {
	return strings.ToLower(strings.TrimSpace(annotations[KeepAnnotation]))
}

// hasUnknownPolicy reports whether an object has a resource policy that Helm doesn't
// know. It may be a misspelt keep, so the object isn't deleted.
func hasUnknownPolicy(annotations map[string]string) bool {
	switch resourcePolicy(annotations) {
	case "", "keep", "delete":
		return false
	}
	return true
}

// mayBeKept reports whether an object's resource policy is keep, or unknown and perhaps
// meant as keep.
func mayBeKept(annotations map[string]string) bool {
	return keeps(annotations) || hasUnknownPolicy(annotations)
}
