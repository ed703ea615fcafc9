package track

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/internal/kube"
	"deployer/track/class"
	"deployer/track/rules"
)

// disappearedStatus is the status of an object that was deleted while it was tracked. A Job
// may have been cleaned up after it had finished.
// https://kubernetes.io/docs/concepts/workloads/controllers/ttlafterfinished/
func (t *trackedObject) disappearedStatus(now time.Time) Status {
	if t.observed.object == nil {
		return t.ownFailure(now, class.Deleted, "it is not there")
	}
	if t.gk == kube.JobKind || t.gk == kube.PodKind {
		v := t.opts.Rules.Evaluate(t.ruleInput(now))
		if v.Phase != rules.Progressing {
			return statusOf(t.ID, t.observed.object.GetUID(), v)
		}
		if t.gk == kube.JobKind {
			return t.ownFailure(now, class.Deleted, "deleted before it finished; if it was cleaned up, set ttlSecondsAfterFinished to 60 or more")
		}
	}
	return t.ownFailure(now, class.Deleted, "deleted while it was tracked")
}

// deletionStatus is the status of an object that is to be deleted. When another object has
// its name by now, the one to delete is gone; nobody waits for the other one.
func (t *trackedObject) deletionStatus() Status {
	if t.observed.isGone {
		return Status{State: Gone}
	}
	if t.observed.unverifiable != "" {
		return Status{State: Gone, Unverified: true, Notes: []string{t.observed.unverifiable}}
	}
	if t.observed.object == nil {
		return Status{State: Waiting, Message: "waiting to be deleted"}
	}
	if t.Baseline != nil && t.Baseline.GetUID() != "" && t.observed.object.GetUID() != t.Baseline.GetUID() {
		return Status{State: Gone, Notes: []string{"another object of this name has been created"}}
	}
	status := Status{State: Progressing, Message: "being deleted", Finalizers: t.observed.object.GetFinalizers()}
	if t.observed.object.GetDeletionTimestamp() == nil {
		status.Message = "waiting to be deleted"
	}
	status.Message += finalizersText(status.Finalizers)
	if t.gk == kube.NamespaceKind {
		status.Message += namespaceContent(t.observed.object)
	}
	return status
}

func finalizersText(finalizers []string) string {
	if len(finalizers) == 0 {
		return ""
	}
	return ": waiting for finalizer " + strings.Join(slices.Sorted(slices.Values(finalizers)), ", ")
}

// namespaceContent says what is left in a namespace that is being deleted.
// https://kubernetes.io/docs/concepts/overview/working-with-objects/namespaces/
func namespaceContent(namespace *unstructured.Unstructured) string {
	for _, c := range rules.Conditions(namespace) {
		if (c["type"] == "NamespaceContentRemaining" || c["type"] == "NamespaceFinalizersRemaining") && c["status"] == "True" {
			message, _ := c["message"].(string)
			return ": " + message
		}
	}
	return ""
}
