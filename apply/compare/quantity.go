package compare

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"deployer/apply/fields"
)

// quantities are the fields whose values the server writes in its own way.
var quantities = map[string]bool{"limits": true, "requests": true, "capacity": true, "hard": true, "min": true, "max": true, "default": true, "defaultRequest": true}

// SameQuantity reports whether two values of a field mean the same amount: 1000m is 1.
func SameQuantity(names []string, before, after any) bool {
	last := len(names) - 1
	if last < 1 || !quantities[names[last-1]] && names[last] != "sizeLimit" {
		return false
	}
	b, err := resource.ParseQuantity(fields.Scalar(before))
	if err != nil {
		return false
	}
	a, err := resource.ParseQuantity(fields.Scalar(after))
	return err == nil && a.Cmp(b) == 0
}
