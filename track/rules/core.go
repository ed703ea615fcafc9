package rules

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/internal/lazyregexp"
	"deployer/track/class"
)

// pod is ready when it is Ready if its restart policy is Always or it must serve, otherwise when
// it has succeeded. https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/
func pod(in Input) Verdict {
	o := in.Object.Object
	phase := text(o, "status", "phase")
	switch phase {
	case "Succeeded":
		return ready("succeeded")
	case "Failed":
		return failed(class.PodFailed, JoinText(text(o, "status", "reason"), OneLine(text(o, "status", "message"))))
	}
	policy := text(o, "spec", "restartPolicy")
	v := progressing(strings.ToLower(phase))
	serving, ending := containersByEnd(in.Object, policy)
	switch {
	case !in.MustComplete && len(serving) > 0 && len(ending) > 0:
		v.Message = "running, not ready"
		if !slices.ContainsFunc(serving, func(c containerState) bool { return !c.ready }) && !slices.ContainsFunc(ending, containerState.isInTrouble) {
			return ready("containers that don't end are ready")
		}
	case in.MustComplete || policy != "" && policy != "Always" && !in.MustServe:
		v.NoProgress = -1
	case conditionIs(Condition(in.Object, "Ready"), "True"):
		return ready("")
	case phase == "Running":
		v.Message = "running, not ready"
	}
	return v
}

// A containerState is what a pod's status says of a container.
type containerState struct {
	ready  bool
	status map[string]any
}

// isInTrouble reports whether a container that may end hasn't begun to run, or has failed.
func (c containerState) isInTrouble() bool {
	code, ended := number(field(c.status, "state", "terminated", "exitCode"))
	return ended && code != 0 || !ended && field(c.status, "state", "running") == nil
}

// containersByEnd returns the containers of a pod that must go on, and those that may end, by their own restart policy or
// that of the pod. https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#restart-policy
func containersByEnd(pod *unstructured.Unstructured, policy string) (serving, ending []containerState) {
	statuses := map[string]map[string]any{}
	for _, status := range Items(pod, "status", "containerStatuses") {
		statuses[text(status, "name")] = status
	}
	for _, c := range Items(pod, "spec", "containers") {
		status := statuses[text(c, "name")]
		isReady, _ := field(status, "ready").(bool)
		if state := (containerState{isReady, status}); cmp.Or(text(c, "restartPolicy"), policy, "Always") == "Always" {
			serving = append(serving, state)
		} else {
			ending = append(ending, state)
		}
	}
	return serving, ending
}

// volumeClaim is ready when bound, or when an event says that it waits for its first
// consumer.
// k8s.io/kubernetes/pkg/controller/volume/persistentvolume/pv_controller.go
func volumeClaim(in Input) Verdict {
	o := in.Object.Object
	switch text(o, "status", "phase") {
	case "Bound":
		v := ready("bound")
		v.Notes = resizeNotes(in.Object)
		return v
	case "Lost":
		return failed(class.VolumeLost, "the volume "+text(o, "spec", "volumeName")+" of the claim is lost")
	}
	if in.Events["WaitForFirstConsumer"].Count+in.Events["WaitForPodScheduled"].Count > 0 {
		v := ready("waits for its first pod")
		v.Notes = []string{"not bound yet: the volume is made for the first pod that uses it"}
		return v
	}
	v := progressing("waiting for a volume")
	if field(o, "spec", "dataSource") != nil || field(o, "spec", "dataSourceRef") != nil {
		v.NoProgress = -1 // it is filled from a snapshot, another claim or by a populator, as long as that takes
	}
	if event := in.Events["ProvisioningFailed"]; provisioningContinues().MatchString(event.Message) {
		v.Message = JoinText(v.Message, event.Message)
		return v
	}
	return refusedByController(in, "ProvisioningFailed", class.ProvisioningFailed, v)
}

// resizeNotes tell what is said of a bound claim that is to grow, or to be changed otherwise. Nobody waits for that: it may need
// a pod that mounts the volume, or that no pod does.
// https://kubernetes.io/docs/concepts/storage/persistent-volumes/#expanding-persistent-volumes-claims
func resizeNotes(claim *unstructured.Unstructured) []string {
	for _, kind := range []string{"ControllerResizeError", "NodeResizeError", "ModifyVolumeError", "FileSystemResizePending", "Resizing", "ModifyingVolume"} {
		if c := Condition(claim, kind); conditionIs(c, "True") {
			return []string{JoinText(kind, conditionText(c))}
		}
	}
	return nil
}

// provisioningContinues matches the errors after which a volume may still be being made: the call took longer
// than its time, and is repeated until it has an answer.
// github.com/kubernetes-csi/external-provisioner/pkg/controller/controller.go, checkError
var provisioningContinues = lazyregexp.New(`code = (Canceled|DeadlineExceeded|Unavailable|Aborted) `)

// service is ready at once unless it needs a load balancer.
func service(in Input) Verdict {
	o := in.Object.Object
	switch {
	case text(o, "spec", "type") != "LoadBalancer":
		return ready("")
	case len(list(o, "status", "loadBalancer", "ingress")) > 0:
		return ready("has an address")
	case len(list(o, "spec", "externalIPs")) > 0:
		return ready("has external addresses")
	}
	v := refusedByController(in, "SyncLoadBalancerFailed", class.LoadBalancerFailed, progressing("waiting for an address of the load balancer"))
	if v.Phase == Failed || in.Events["EnsuringLoadBalancer"].Count > 0 || slices.Contains(in.Object.GetFinalizers(), "service.kubernetes.io/load-balancer-cleanup") {
		return v
	}
	in.Workloads = Workloads{} // no workload of the release hands out addresses
	return unverifiedAfter(in, v, time.Minute, "no load-balancer controller answered")
}

// refusedByController fails an object with the controller's error event, if there is one; the class says how often and how
// long it must occur.
func refusedByController(in Input, reason string, c class.Class, v Verdict) Verdict {
	event := in.Events[reason]
	if event.Count == 0 {
		return v
	}
	v = failed(c, event.Message)
	v.Since, v.Attempts = event.Since, event.Count
	return v
}

func namespace(in Input) Verdict {
	if text(in.Object.Object, "status", "phase") == "Terminating" {
		return failed(class.Terminating, "the namespace is being deleted")
	}
	return ready("")
}

func disruptionBudget(in Input) Verdict {
	v := ready("")
	if c := Condition(in.Object, "DisruptionAllowed"); conditionIs(c, "False") && text(c, "reason") == "SyncFailed" {
		v.Notes = []string{conditionText(c)}
	}
	return v
}
