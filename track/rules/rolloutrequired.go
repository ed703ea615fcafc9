package rules

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// requiredPods is how many pods of the new revision have to be available by an
// annotation rollout-required; partial is false when it asks for the whole
// rollout. A percentage is rounded up, as that of a PodDisruptionBudget's
// minAvailable is: less would not be what was asked for.
// https://kubernetes.io/docs/tasks/run-application/configure-pdb/
func requiredPods(annotation string, wanted, unavailable int) (need int, partial bool) {
	switch {
	case annotation == "none":
		return 0, true
	case annotation == "max-unavailable":
		return max(0, wanted-unavailable), true
	case strings.HasSuffix(annotation, "%"):
		return scaledValue(annotation, "", wanted, true), true
	}
	return 0, false
}

// isComplete reports whether all pods are new and available.
func (r *Rollout) isComplete() bool {
	return r.Updated >= r.Desired && r.Old == 0 && r.Available >= r.Desired
}

// updatedAndAvailable is how many pods are what they should be, at least: kept
// ones may be old. A status counts the pods that are available without their
// revisions, so each old one may be among them, unless the new ones have been
// looked at.
func (r *Rollout) updatedAndAvailable(in Input, kept int) int {
	least := r.Available - max(0, r.Old-kept)
	if seconds, _ := number(field(in.Object.Object, "spec", "minReadySeconds")); seconds > 0 {
		return least // a pod that is ready may not be available yet
	}
	return max(least, min(in.NewReady, r.Available))
}

// deploymentUnavailable is how many pods may be missing during an update:
// percentages of maxUnavailable are rounded down, those of maxSurge up, and one
// pod may be missing when both come to nothing. Absent is the API server's 25%.
// k8s.io/kubernetes/pkg/controller/deployment/util, MaxUnavailable and ResolveFenceposts
func deploymentUnavailable(o map[string]any, wanted int) int {
	if text(o, "spec", "strategy", "type") == "Recreate" {
		return 0
	}
	unavailable := scaledValue(field(o, "spec", "strategy", "rollingUpdate", "maxUnavailable"), "25%", wanted, false)
	if unavailable == 0 && scaledValue(field(o, "spec", "strategy", "rollingUpdate", "maxSurge"), "25%", wanted, true) == 0 {
		return 1
	}
	return unavailable
}

// statefulSetUnavailable is how many pods are replaced at a time: percentages are
// rounded down, to one at least. Absent is one. With OnDelete nobody replaces any.
// k8s.io/kubernetes/pkg/controller/statefulset, getStatefulSetMaxUnavailable
func statefulSetUnavailable(o map[string]any, wanted int) int {
	if text(o, "spec", "updateStrategy", "type") == "OnDelete" {
		return 0
	}
	return max(1, scaledValue(field(o, "spec", "updateStrategy", "rollingUpdate", "maxUnavailable"), "1", wanted, false))
}

// daemonSetUnavailable is how many nodes may be without an available pod: both
// percentages are rounded up, and one node may be when both come to nothing.
// k8s.io/kubernetes/pkg/controller/daemon, updatedDesiredNodeCounts
func daemonSetUnavailable(o map[string]any, wanted int) int {
	if text(o, "spec", "updateStrategy", "type") == "OnDelete" {
		return 0
	}
	unavailable := scaledValue(field(o, "spec", "updateStrategy", "rollingUpdate", "maxUnavailable"), "1", wanted, true)
	if unavailable == 0 && scaledValue(field(o, "spec", "updateStrategy", "rollingUpdate", "maxSurge"), "0", wanted, true) == 0 {
		return 1
	}
	return unavailable
}

// scaledValue is a number, or a percentage of a total; absent is used when there is none.
func scaledValue(value any, absent string, total int, up bool) int {
	n := intstr.Parse(absent)
	switch v := value.(type) {
	case nil:
	case string:
		n = intstr.Parse(v)
	default:
		whole, _ := number(v)
		n = intstr.FromInt32(int32(whole))
	}
	out, err := intstr.GetScaledValueFromIntOrPercent(&n, total, up)
	if err != nil {
		return 0 // the API server would have refused it
	}
	return out
}
