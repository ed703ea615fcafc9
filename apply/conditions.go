package apply

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// conditionOf reports whether a condition of an object is true, and its message.
func conditionOf(obj *unstructured.Unstructured, kind string) (bool, string) {
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, item := range list {
		c, ok := item.(map[string]any)
		if ok && c["type"] == kind {
			message, _ := c["message"].(string)
			return c["status"] == "True", message
		}
	}
	return false, ""
}
