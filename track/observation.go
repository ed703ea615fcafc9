package track

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"deployer/track/rules"
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
	if o.object == nil {
		return 0
	}
	status, _ := o.object.Object["status"].(map[string]any)
	total := 0
	for _, key := range []string{"updatedReplicas", "currentNumberScheduled", "active", "succeeded", "failed"} {
		n, _ := status[key].(int64)
		total += int(n)
	}
	return total
}

// isCurrent reports whether the controller has seen the present generation.
func (o *observation) isCurrent() bool {
	n, _, _ := unstructured.NestedInt64(o.object.Object, "status", "observedGeneration")
	return n >= o.object.GetGeneration()
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

const maxEvents = 50 // kept for one object

// An eventLog has the events about an object and its pods.
type eventLog struct {
	counts rules.EventCounts // of those about the object itself
	kept   []Event           // newest last, at most maxEvents
}

// add keeps an event, in place of an earlier one about the same. It returns false when the
// event is known.
func (l *eventLog) add(e Event) bool {
	i := slices.IndexFunc(l.kept, func(old Event) bool {
		return old.Object == e.Object && old.Reason == e.Reason && withoutPodNames(old.Message) == withoutPodNames(e.Message)
	})
	if i < 0 {
		l.kept = append(l.kept, e)
		l.kept = l.kept[max(0, len(l.kept)-maxEvents):]
		return true
	}
	old := &l.kept[i]
	if e.Count <= old.Count && !e.Last.After(old.Last) {
		return false
	}
	old.Count, old.Last, old.Message = max(e.Count, old.Count), e.Last, e.Message
	return true
}

// withoutPodNames writes a message without what differs from pod to pod.
func withoutPodNames(message string) string {
	fields := strings.Fields(message)
	for i, f := range fields {
		if strings.ContainsAny(f, "0123456789") && !strings.Contains(f, "/") {
			fields[i] = "#"
		}
	}
	return strings.Join(fields, " ")
}
