package rules

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/track/class"
)

// job relies on the conditions of the Job controller, which knows pod failure policies,
// success policies and per-index limits. It writes FailureTarget and
// SuccessCriteriaMet first, and Failed or Complete when all pods have ended.
// https://kubernetes.io/docs/concepts/workloads/controllers/job/#terminal-job-conditions
func job(in Input) Verdict {
	o := in.Object.Object
	total := replicas(o, "spec", "completions")
	done := count(o, "status", "succeeded")
	v := Verdict{Done: min(done, total), Total: total, Message: jobProgress(o, done, total), NoProgress: -1}
	for _, kind := range []string{"Failed", "FailureTarget"} {
		if c := Condition(in.Object, kind); conditionIs(c, "True") {
			v.Phase, v.Class, v.Message = Failed, class.JobFailed, conditionText(c)
			return v
		}
	}
	held := ""
	if suspended, _ := field(o, "spec", "suspend").(bool); suspended {
		held = "suspended"
	} else if replicas(o, "spec", "parallelism") == 0 {
		held = "paused by parallelism 0"
	}
	switch {
	case conditionIs(Condition(in.Object, "Complete"), "True"):
		v.Phase, v.Done = Ready, total
	case conditionIs(Condition(in.Object, "SuccessCriteriaMet"), "True"):
		v.Phase, v.Grace, v.Message = Ready, time.Minute, "succeeded, finishing"
	case held == "":
	case IsQueuedByKueue(in.Object):
		v.Message = "queued by Kueue"
	case in.MustComplete:
		v.Message = held
	default:
		v.Phase, v.Message, v.Notes = Ready, "", []string{held + ": it has not run"}
	}
	return v
}

func jobProgress(o map[string]any, done, total int) string {
	s := fmt.Sprintf("%d of %d succeeded", done, total)
	if active := count(o, "status", "active"); active > 0 {
		s += fmt.Sprintf(", %d active", active)
	}
	if leaving := count(o, "status", "terminating"); leaving > 0 && text(o, "spec", "podReplacementPolicy") == "Failed" { // it waits for them
		s += fmt.Sprintf(", %d terminating", leaving)
	}
	if bad := count(o, "status", "failed"); bad > 0 {
		s += fmt.Sprintf(", %d failed", bad)
		if limit, ok := number(field(o, "spec", "backoffLimit")); ok {
			s += fmt.Sprintf(" (limit %d)", limit)
		}
	}
	return s
}

// IsQueuedByKueue reports whether Kueue decides when the pods of a workload may start.
// https://kueue.sigs.k8s.io/docs/tasks/run/jobs/
func IsQueuedByKueue(workload *unstructured.Unstructured) bool {
	return workload.GetLabels()["kueue.x-k8s.io/queue-name"] != ""
}

func cronJob(in Input) Verdict {
	v := ready("")
	if suspended, _ := field(in.Object.Object, "spec", "suspend").(bool); suspended {
		v.Notes = []string{"suspended"}
	}
	return v
}
