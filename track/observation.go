package track

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// An observation is what the API server has shown of an object.
type observation struct {
	object               *unstructured.Unstructured // as last seen; nil before
	generation           int64                      // that the status is about
	serverAppliedAt      time.Time                  // by the cluster's clock; zero when unknown
	isGone               bool                       // it existed and was deleted
	isServed             bool                       // of a CustomResourceDefinition: its kind is served
	hasStatusSubresource *bool                      // its kind has a status subresource; nil when unknown
	unverifiable         string                     // why the object can't be observed; empty when it can
	notes                []string
}

// podsCreated is how many pods the controller has, by its own count.
func (o *observation) podsCreated() int {
	status, _ := o.object.Object["status"].(map[string]any)
	total := 0
	for _, key := range []string{"updatedReplicas", "currentNumberScheduled", "active", "succeeded", "failed"} {
		n, _ := status[key].(int64)
		total += int(n)
	}
	return total
}

func (o *observation) addNote(text string) {
	if !slices.Contains(o.notes, text) {
		o.notes = append(o.notes, text)
	}
}

// isOlder compares resource versions, which grow within one resource, also from an object to the next one of its name.
// https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions
func isOlder(a, b *unstructured.Unstructured) bool {
	if b == nil {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order < 0
}

// lastWriter returns the field manager that wrote the object last.
func lastWriter(obj *unstructured.Unstructured) string {
	who, at := "an unknown manager", time.Time{}
	for _, f := range obj.GetManagedFields() {
		if f.Subresource != "status" && f.Time != nil && f.Time.After(at) {
			who, at = f.Manager, f.Time.Time
		}
	}
	return who
}
