package track

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/internal/kube"
	"deployer/track/class"
	"deployer/track/rules"
)

// disappearedStatus is the status of an object that was deleted while it was tracked. What runs to its end
// may have been cleaned up after it had finished.
func (e *evaluation) disappearedStatus() Status {
	if e.obj.observed.object == nil {
		return e.ownFailure(class.Deleted, "it is not there")
	}
	cleanedUp := kube.IsDeletedWhenFinished(e.obj.observed.object)
	if cleanedUp || kube.RunsToEnd(e.obj.gk) {
		v := e.obj.opts.Rules.Evaluate(e.ruleInput())
		if v.Phase != rules.Progressing {
			return statusOf(v)
		}
		if cleanedUp || e.obj.gk == kube.JobKind {
			return e.ownFailure(class.Deleted, "deleted before it finished; if it was cleaned up, set ttlSecondsAfterFinished to 60 or more")
		}
	}
	return e.ownFailure(class.Deleted, "deleted while it was tracked")
}

// deletionStatus is the status of an object that is to be deleted. When another object has
// its name by now, the one to delete is gone; nobody waits for the other one.
func (e *evaluation) deletionStatus() Status {
	switch {
	case e.obj.observed.isGone:
		return Status{State: Gone}
	case e.obj.observed.unverifiable != "":
		return Status{State: Gone, Unverified: true, Notes: []string{e.obj.observed.unverifiable}}
	case e.obj.observed.object == nil:
		return Status{State: Waiting, Message: "waiting to be deleted"}
	case e.obj.target.Baseline != nil && e.obj.target.Baseline.GetUID() != "" && e.obj.observed.object.GetUID() != e.obj.target.Baseline.GetUID():
		return Status{State: Gone, Notes: []string{"another object of this name has been created"}}
	}
	status := Status{State: Progressing, Message: "being deleted", Finalizers: e.obj.observed.object.GetFinalizers()}
	if e.obj.observed.object.GetDeletionTimestamp() == nil {
		status.Message = "waiting to be deleted"
	}
	status.Message += finalizersText(status.Finalizers)
	if e.obj.gk == kube.NamespaceKind {
		status.Message += namespaceContent(e.obj.observed.object)
	}
	return status
}

func finalizersText(finalizers []string) string {
	if len(finalizers) == 0 {
		return ""
	}
	return ": waiting for finalizer " + strings.Join(slices.Sorted(slices.Values(finalizers)), ", ")
}

// namespaceContent says what is left in a namespace that is being deleted, and what holds it. The condition which says that
// all content was deleted is about the requests to delete it.
// https://kubernetes.io/docs/concepts/overview/working-with-objects/namespaces/
func namespaceContent(namespace *unstructured.Unstructured) string {
	text := ""
	for _, c := range rules.Conditions(namespace) {
		if (c["type"] == "NamespaceContentRemaining" || c["type"] == "NamespaceFinalizersRemaining") && c["status"] == "True" {
			message, _ := c["message"].(string)
			text += ": " + message
		}
	}
	return text
}
