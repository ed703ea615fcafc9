package rules

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// requiredPods returns how many new pods must be available by the annotation
// rollout-required. partial is false when the whole rollout is required. A percentage is
// rounded up, as in minAvailable of a PodDisruptionBudget.
// https://kubernetes.io/docs/tasks/run-application/configure-pdb/
func requiredPods(annotation string, desired, unavailable int) (need int, partial bool) {
	switch {
	case annotation == "none":
		return 0, true
	case annotation == "max-unavailable":
		return max(0, desired-unavailable), true
	case strings.HasSuffix(annotation, "%"):
		return scaledValue(annotation, "", desired, true), true
	}
	return 0, false
}

// isComplete reports whether all pods are new and available.
func (r *Rollout) isComplete() bool {
	return r.Updated >= r.Desired && r.Old == 0 && r.Available >= r.Desired
}

// updatedAndAvailable returns the least number of pods that are both available and of the
// new revision; kept pods may be old. The status counts available pods of all revisions, so
// every old pod may be among them, unless the new pods have been observed.
func (r *Rollout) updatedAndAvailable(in Input, kept int) int {
	least := r.Available - max(0, r.Old-kept)
	if count(in.Object.Object, "spec", "minReadySeconds") > 0 {
		return least // a pod that is ready may not be available yet
	}
	return max(least, min(in.NewReady, r.Available))
}

// deploymentUnavailable returns how many pods may be unavailable during an update.
// Percentages of maxUnavailable are rounded down. The default is 25%.
// k8s.io/kubernetes/pkg/controller/deployment/util, MaxUnavailable and ResolveFenceposts
func deploymentUnavailable(o map[string]any, desired int) int {
	if text(o, "spec", "strategy", "type") == "Recreate" {
		return 0
	}
	return unavailable(field(o, "spec", "strategy", "rollingUpdate"), "25%", "25%", desired, false)
}

// setUnavailable returns how many pods of a StatefulSet are replaced at a time, and how many
// nodes of a DaemonSet may have no available pod. Percentages are rounded down for the first and
// up for the second. The default is 1. With OnDelete it is 0.
// k8s.io/kubernetes/pkg/controller/statefulset, getStatefulSetMaxUnavailable
// k8s.io/kubernetes/pkg/controller/daemon, updatedDesiredNodeCounts
func setUnavailable(o map[string]any, desired int, up bool) int {
	if text(o, "spec", "updateStrategy", "type") == "OnDelete" {
		return 0
	}
	return unavailable(field(o, "spec", "updateStrategy", "rollingUpdate"), "1", "0", desired, up)
}

// unavailable returns the maxUnavailable of a rolling update. It is 1 where it and maxSurge,
// whose percentages are rounded up, come to 0: otherwise nothing could be updated.
func unavailable(update any, absent, absentSurge string, desired int, up bool) int {
	settings, _ := update.(map[string]any)
	n := scaledValue(settings["maxUnavailable"], absent, desired, up)
	if n == 0 && scaledValue(settings["maxSurge"], absentSurge, desired, true) == 0 {
		return 1
	}
	return n
}

// scaledValue returns a number, or a percentage of a total; absent is the default.
func scaledValue(value any, absent string, total int, up bool) int {
	if value == nil {
		value = absent
	}
	n := intstr.Parse(fmt.Sprint(value))
	out, err := intstr.GetScaledValueFromIntOrPercent(&n, total, up)
	if err != nil {
		return 0 // the API server would have refused it
	}
	return out
}
