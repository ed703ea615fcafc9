package track

import (
	"sort"
	"strings"
	"time"

	"deployer/track/class"
	"deployer/track/rules"
)

// disappearedStatus judges an object that was deleted while it was tracked. A Job
// may have been cleaned up after it had finished.
// https://kubernetes.io/docs/concepts/workloads/controllers/ttlafterfinished/
func (s *trackedObject) disappearedStatus(now time.Time) Status {
	if s.observed.object == nil {
		return s.ownFailure(now, class.Deleted, "it is not there")
	}
	if s.gk.Kind == "Job" || s.gk == podKind {
		v := s.opts.Rules.Evaluate(s.ruleInput(now))
		if v.Phase != rules.Progressing {
			return statusOf(s.ID, s.observed.object.GetUID(), v)
		}
		if s.gk.Kind == "Job" {
			return s.ownFailure(now, class.Deleted, "deleted before it finished; if it was cleaned up, set ttlSecondsAfterFinished to 60 or more")
		}
	}
	return s.ownFailure(now, class.Deleted, "deleted while it was tracked")
}

// deletionStatus judges an object that is to go. Another object of the name is none
// of our business: somebody made it anew.
func (s *trackedObject) deletionStatus() Status {
	if s.observed.isGone {
		return Status{State: Gone}
	}
	if s.observed.unverifiable != "" {
		return Status{State: Gone, Unverified: true, Notes: []string{s.observed.unverifiable}}
	}
	if s.observed.object == nil {
		return Status{State: Waiting, Message: "waiting to be deleted"}
	}
	if s.Baseline != nil && s.Baseline.GetUID() != "" && s.observed.object.GetUID() != s.Baseline.GetUID() {
		return Status{State: Gone, Notes: []string{"somebody has made it anew"}}
	}
	status := Status{State: Progressing, Message: "being deleted", Finalizers: s.observed.object.GetFinalizers()}
	if s.observed.object.GetDeletionTimestamp() == nil {
		status.Message = "waiting to be deleted"
	}
	status.Message += finalizersText(status.Finalizers)
	if s.gk.Kind == "Namespace" {
		status.Message += namespaceContent(s.observed.object.Object)
	}
	return status
}

func finalizersText(finalizers []string) string {
	if len(finalizers) == 0 {
		return ""
	}
	sorted := append([]string(nil), finalizers...)
	sort.Strings(sorted)
	return ": waiting for finalizer " + strings.Join(sorted, ", ")
}

// namespaceContent tells what is left in a namespace that is being deleted.
// https://kubernetes.io/docs/concepts/overview/working-with-objects/namespaces/
func namespaceContent(o map[string]any) string {
	status, _ := o["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		m, _ := c.(map[string]any)
		kind, _ := m["type"].(string)
		if (kind == "NamespaceContentRemaining" || kind == "NamespaceFinalizersRemaining") && m["status"] == "True" {
			message, _ := m["message"].(string)
			return ": " + message
		}
	}
	return ""
}
