package track

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"deployer/track/pods"
)

// newPods is what is known of the pods of a workload's new revision.
type newPods struct {
	revision        string // label value of the pods; empty when unknown
	revisionNumber  string // the Deployment's own number of that revision
	owner           string // key of the revision in podWatches.owners; empty before its pods are wanted
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

// noteCreationFailure notes why the controller can't create more pods than it has. Its time
// begins anew with another class of reason.
func (p *newPods) noteCreationFailure(message string, created int, now time.Time) {
	if p.creationFailure == nil || pods.CreationFailureClass(p.creationFailure.message) != pods.CreationFailureClass(message) {
		p.creationFailure = &podCreationFailure{since: now, podsBefore: created}
	}
	p.creationFailure.message = message
}
