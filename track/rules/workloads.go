package rules

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"deployer/track/class"
)

const (
	notObserved      = "the controller has not seen the change yet"
	deadlineExceeded = "ProgressDeadlineExceeded" // reason of Progressing=False
)

// deployment works like kubectl rollout status, but also counts surplus old pods, and
// ignores an exceeded deadline of an earlier change.
// k8s.io/kubectl/pkg/polymorphichelpers/rollout_status.go
func deployment(in Input) Verdict {
	o := in.Object.Object
	r := Rollout{
		Desired:     replicas(o, "spec", "replicas"),
		Updated:     count(o, "status", "updatedReplicas"),
		Available:   count(o, "status", "availableReplicas"),
		Terminating: count(o, "status", "terminatingReplicas"),

		CountsTerminating: field(o, "status", "terminatingReplicas") != nil,
	}
	r.countOld(count(o, "status", "replicas"))
	deadline := progressDeadline(o)
	if !ChangeObserved(in.Object, in.Baseline) {
		return Verdict{Message: notObserved, Total: r.Desired, NoProgress: deadline}
	}
	v := Verdict{Rollout: &r, Done: min(r.Updated, r.Available, r.Desired), Total: r.Desired, NoProgress: deadline}
	if paused, _ := field(o, "spec", "paused").(bool); paused {
		v.Phase, v.Notes = Ready, []string{"paused: changes are not rolled out"}
		return v
	}
	v.Message = r.String()
	need, partial := requiredPods(in.RolloutRequired, r.Desired, maxUnavailable(field(o, "spec", "strategy"), "25%", "25%", r.Desired, false))
	if partial && r.updatedAndAvailable(in, 0) >= need || !partial && r.isComplete() {
		v.Phase = Ready
		return v
	}
	if p := Condition(in.Object, "Progressing"); conditionIs(p, "False") && text(p, "reason") == deadlineExceeded && isFresh(in, p) {
		v.Phase, v.Class, v.Message = Failed, class.ProgressDeadline, conditionText(p)
		if !in.Changed {
			v.Grace = 30 * time.Second // exceeded before the release: gives time to read why from the pods
		}
	}
	return v
}

// progressDeadline returns the Deployment's progressDeadlineSeconds. The maximum means no
// deadline; the API server's default is 600.
// https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#progress-deadline-seconds
func progressDeadline(o map[string]any) time.Duration {
	n := count(o, "spec", "progressDeadlineSeconds")
	if n >= math.MaxInt32 {
		return -1
	}
	return time.Duration(n) * time.Second
}

func (r *Rollout) countOld(all int) {
	r.Old = max(0, all-r.Updated)
	r.OldServing = min(r.Old, r.Available)
}

func (r *Rollout) String() string {
	s := fmt.Sprintf("%d of %d pods updated, %d available", r.Updated, r.Desired, r.Available)
	if r.Old > 0 { // they may be the available ones
		s = fmt.Sprintf("%d of %d pods updated, %d of %d available, %d old", r.Updated, r.Desired, r.Available, r.Updated+r.Old, r.Old)
	}
	if r.Terminating > 0 && r.Updated < r.Desired { // a podReplacementPolicy may wait for them
		s += fmt.Sprintf(", %d terminating", r.Terminating)
	}
	return s
}

// statefulSet counts what the partition allows to be updated. The partition
// counts from the start ordinal, so replicas-partition holds with any start.
// k8s.io/kubernetes/pkg/controller/statefulset/stateful_set_utils.go
func statefulSet(in Input) Verdict {
	o := in.Object.Object
	r := Rollout{
		Desired:   replicas(o, "spec", "replicas"),
		Updated:   count(o, "status", "updatedReplicas"),
		Available: count(o, "status", "availableReplicas"),
	}
	total, readyReplicas := count(o, "status", "replicas"), count(o, "status", "readyReplicas")
	if !ChangeObserved(in.Object, in.Baseline) {
		return Verdict{Message: notObserved, Total: r.Desired}
	}
	revisionsEqual := text(o, "status", "currentRevision") == text(o, "status", "updateRevision")
	if revisionsEqual {
		r.Updated = max(r.Updated, min(count(o, "status", "currentReplicas"), r.Desired))
	}
	r.countOld(total)
	v := Verdict{Rollout: &r, Message: r.String(), Total: r.Desired}
	v.Done = min(r.Updated, readyReplicas, r.Desired)
	allAvailable := readyReplicas == r.Desired && total == r.Desired && r.Available >= r.Desired
	need, partial := requiredPods(in.RolloutRequired, r.Desired, maxUnavailable(field(o, "spec", "updateStrategy"), "1", "0", r.Desired, false))
	partition := count(o, "spec", "updateStrategy", "rollingUpdate", "partition")
	switch {
	case isUpdatedOnDelete(o):
		v.Done = min(readyReplicas, r.Desired)
		if allAvailable && !partial || partial && r.Available >= need {
			v.Phase, v.Notes = Ready, onDeleteNote(r.Old, revisionsEqual)
		}
	case partial:
		kept := min(partition, r.Desired)
		if revisionsEqual {
			kept = 0
		}
		if r.updatedAndAvailable(in, kept) >= need {
			v.Phase = Ready
		}
	case allAvailable && r.Updated >= max(0, r.Desired-partition) && (partition > 0 || revisionsEqual):
		v.Phase, v.Done = Ready, r.Desired
		if kept := r.Desired - r.Updated; partition > 0 && kept > 0 && !revisionsEqual {
			v.Notes = []string{fmt.Sprintf("partition %d keeps %s on the old revision", partition, podsText(kept))}
		}
	}
	return v
}

func onDeleteNote(old int, same bool) []string {
	if old == 0 || same {
		return nil
	}
	return []string{fmt.Sprintf("update strategy OnDelete: %s of the old revision; delete them to update", podsText(old))}
}

func podsText(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return strconv.Itoa(n) + " pods"
}

func daemonSet(in Input) Verdict {
	o := in.Object.Object
	desired := count(o, "status", "desiredNumberScheduled")
	r := Rollout{
		Desired:   desired,
		Updated:   count(o, "status", "updatedNumberScheduled"),
		Available: count(o, "status", "numberAvailable"),
	}
	if !ChangeObserved(in.Object, in.Baseline) {
		return Verdict{Message: notObserved}
	}
	r.countOld(count(o, "status", "currentNumberScheduled"))
	v := Verdict{Rollout: &r, Message: r.String(), Total: desired, Done: min(r.Updated, r.Available, desired)}
	if desired == 0 {
		v.Phase, v.Message, v.Notes = Ready, "", []string{"no node is selected"}
		return v
	}
	need, partial := requiredPods(in.RolloutRequired, desired, maxUnavailable(field(o, "spec", "updateStrategy"), "1", "0", desired, true))
	if isUpdatedOnDelete(o) {
		v.Done = min(count(o, "status", "numberReady"), desired)
		if v.Done == desired && !partial || partial && r.Available >= need {
			v.Phase, v.Notes = Ready, onDeleteNote(r.Old, false)
		}
		return v
	}
	if partial && r.updatedAndAvailable(in, 0) >= need {
		v.Phase = Ready
	}
	if r.Old = max(0, desired-r.Updated); !partial && r.isComplete() {
		v.Phase = Ready
	}
	return v
}

// replicaSet is for ReplicaSets and ReplicationControllers that no Deployment
// owns. A change of the template reaches only pods created later.
func replicaSet(in Input) Verdict {
	o := in.Object.Object
	desired := replicas(o, "spec", "replicas")
	available := count(o, "status", "availableReplicas")
	if !ChangeObserved(in.Object, in.Baseline) {
		return Verdict{Message: notObserved, Total: desired}
	}
	v := Verdict{Total: desired, Done: min(available, desired), Message: fmt.Sprintf("%d of %d pods available", available, desired)}
	v.Rollout = &Rollout{Desired: desired, Updated: count(o, "status", "replicas"), Available: available}
	if available >= desired && count(o, "status", "fullyLabeledReplicas") >= desired {
		v.Phase = Ready
	}
	return v
}

// PodCreationFailure returns the message of the condition by which a Deployment or a
// ReplicaSet says that it can't create pods; empty when it can. The controller
// shows a failure of an old ReplicaSet when the new one has none, so a message
// about pods of another ReplicaSet than the new one is no news.
// k8s.io/kubernetes/pkg/controller/deployment/progress.go getReplicaFailures
func PodCreationFailure(obj *unstructured.Unstructured, replicaSet string) string {
	c := Condition(obj, "ReplicaFailure")
	if !conditionIs(c, "True") {
		return ""
	}
	message := OneLine(text(c, "message"))
	if replicaSet == "" || strings.Contains(message, replicaSet+"-") {
		return message
	}
	if _, rest, named := strings.Cut(message, `pods "`+obj.GetName()+"-"); named && strings.Contains(rest, "-") {
		return "" // about pods of another ReplicaSet
	}
	return message
}

// LongestSilence is the longest time in which nothing may be heard of a pod of a workload, by its own settings: while it ends,
// before its successor is made; while it starts; and while it must stay ready.
// https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination
func LongestSilence(obj *unstructured.Unstructured) time.Duration {
	longest := max(count(obj.Object, "spec", "template", "spec", "terminationGracePeriodSeconds"), count(obj.Object, "spec", "minReadySeconds"))
	for _, c := range slices.Concat(TemplateContainers(obj), TemplateInitContainers(obj)) {
		startup := count(c, "startupProbe", "initialDelaySeconds") + count(c, "startupProbe", "periodSeconds")*count(c, "startupProbe", "failureThreshold")
		longest = max(longest, startup, count(c, "readinessProbe", "initialDelaySeconds"))
	}
	return time.Duration(longest) * time.Second
}

// LacksReadinessProbe reports whether a workload's template has a container or sidecar that is
// called ready as soon as it runs: without a readiness probe, in a workload that
// doesn't ask for minReadySeconds.
// https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#container-probes
func LacksReadinessProbe(obj *unstructured.Unstructured) bool {
	if count(obj.Object, "spec", "minReadySeconds") > 0 {
		return false
	}
	lacks := func(c map[string]any) bool { return c["readinessProbe"] == nil }
	isSidecar := func(c map[string]any) bool { return c["restartPolicy"] == "Always" }
	return slices.ContainsFunc(TemplateContainers(obj), lacks) ||
		slices.ContainsFunc(TemplateInitContainers(obj), func(c map[string]any) bool { return isSidecar(c) && lacks(c) })
}

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
