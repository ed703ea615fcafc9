package track

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"deployer/track/pods"
	"deployer/track/rules"
)

// An observation is what the API server has shown of an object.
type observation struct {
	object          *unstructured.Unstructured // as last seen; nil before
	generation      int64                      // that the status is about
	serverAppliedAt time.Time                  // by the cluster's clock; zero when unknown
	isGone          bool                       // it existed and was deleted
	isServed        bool                       // of a CustomResourceDefinition: its kind is served
	hasStatus       *bool                      // objects of its kind have a status; nil when unknown
	unverifiable    string                     // why the object can't be observed; empty when it can
	notes           []string
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

// newPods is what is known of the pods of a workload's new revision.
type newPods struct {
	revision        string   // label value of the pods; empty when unknown
	revisionNumber  string   // the Deployment's own number of that revision
	query           podQuery // that they are watched by
	owner           string   // key of the revision in podWatches.owners; empty before a watch of its pods is requested
	byUID           map[types.UID]*pods.History
	creationFailure *podCreationFailure // why the controller creates none; nil when it does
	isOutdated      bool                // the workload has changed since its pods were looked for
}

// ready counts the pods that are ready, as far as they are known.
func (p *newPods) ready() int {
	n := 0
	for _, history := range p.byUID {
		if history.Pod.Ready && !history.Pod.Deleting {
			n++
		}
	}
	return n
}

// resizeWords are what a kubelet says of a resize in place that it hasn't made.
// https://kubernetes.io/docs/tasks/configure-pod-container/resize-container-resources/
var resizeWords = map[string]string{corev1.PodReasonDeferred: " is deferred", corev1.PodReasonInfeasible: " is infeasible", corev1.PodReasonError: " has failed"}

// resizeNotes says of a pod whose resources can't be changed in place, if there is one, why not.
func (p *newPods) resizeNotes() []string {
	for _, uid := range slices.Sorted(maps.Keys(p.byUID)) {
		if pod := p.byUID[uid].Pod; resizeWords[pod.Resize.Reason] != "" && !pod.Deleting {
			return []string{rules.JoinText("resize of pod "+pod.Name+resizeWords[pod.Resize.Reason], pod.Resize.Message)}
		}
	}
	return nil
}

// disruption is why the cluster ends a pod that is tracked itself; empty when it doesn't.
func (p *newPods) disruption() string {
	for _, history := range p.byUID {
		return rules.JoinText(history.Pod.Disruption.Reason, history.Pod.Disruption.Message)
	}
	return ""
}

// list returns the pods, in no order.
func (p *newPods) list() []pods.Pod {
	var out []pods.Pod
	for _, history := range p.byUID {
		out = append(out, history.Pod)
	}
	return out
}

// podCreationFailure is what a controller says of pods that it can't create.
type podCreationFailure struct {
	message    string
	since      time.Time
	count      int
	podsBefore int // pods that existed when the message came
}

// recordCreationFailure records why the controller can't create more pods than it has. Its time
// begins anew with another class of reason.
func (p *newPods) recordCreationFailure(message string, created int, now time.Time) {
	if p.creationFailure == nil || pods.CreationFailureClass(p.creationFailure.message) != pods.CreationFailureClass(message) {
		p.creationFailure = &podCreationFailure{since: now, podsBefore: created}
	}
	p.creationFailure.message = message
}
