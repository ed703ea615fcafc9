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

// maxUnavailable returns how many pods a rolling update may make unavailable; 0 for other strategies.
// A percentage is rounded up if up is set, otherwise down. absent and absentSurge are the kind's
// defaults of maxUnavailable and maxSurge. If both fields come to 0, the result is 1: otherwise
// nothing could be updated.
// k8s.io/kubernetes/pkg/controller/deployment/util, MaxUnavailable and ResolveFenceposts
// k8s.io/kubernetes/pkg/controller/statefulset, getStatefulSetMaxUnavailable
// k8s.io/kubernetes/pkg/controller/daemon, updatedDesiredNodeCounts
func maxUnavailable(strategy any, absent, absentSurge string, desired int, up bool) int {
	s, _ := strategy.(map[string]any)
	if kind := text(s, "type"); kind != "" && kind != "RollingUpdate" {
		return 0
	}
	n := scaledValue(field(s, "rollingUpdate", "maxUnavailable"), absent, desired, up)
	if n == 0 && scaledValue(field(s, "rollingUpdate", "maxSurge"), absentSurge, desired, true) == 0 {
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
