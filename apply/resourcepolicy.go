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

// hasUnknownPolicy says that a resource policy is none that Helm knows: a misspelt keep must
// not cost an object its life.
func hasUnknownPolicy(annotations map[string]string) bool {
	switch resourcePolicy(annotations) {
	case "", "keep", "delete":
		return false
	}
	return true
}

// mayBeKept says that an object isn't to be deleted, or that its policy may have
// meant that.
func mayBeKept(annotations map[string]string) bool {
	return keeps(annotations) || hasUnknownPolicy(annotations)
}
