package rules

import (
	"cmp"
	"fmt"
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

// customResourceDefinition is ready when its names are accepted and it is established. The
// tracker checks whether its kind is served.
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
func customResourceDefinition(in Input) Verdict {
	names := Condition(in.Object, "NamesAccepted")
	switch {
	case conditionIs(names, "False") && isFresh(in, names):
		return failed(class.NamesRejected, conditionText(names))
	case conditionIs(names, "True") && conditionIs(Condition(in.Object, "Established"), "True"):
		return ready("established")
	}
	return progressing("waiting to be established")
}

// apiService is ready when available. Without a service the API server itself serves it.
func apiService(in Input) Verdict {
	c := Condition(in.Object, "Available")
	switch {
	case field(in.Object.Object, "spec", "service") == nil:
		return ready("")
	case conditionIs(c, "True"):
		return ready("available")
	case c == nil:
		return progressing("waiting to become available")
	}
	return progressing(conditionText(c))
}

// webhookConfiguration is ready at once, unless an annotation asks cert-manager to inject
// the CA.
// https://cert-manager.io/docs/concepts/ca-injector/
func webhookConfiguration(in Input) Verdict {
	annotations := in.Object.GetAnnotations()
	isInjected := func(key string) bool { _, is := annotations[key]; return is }
	if !slices.ContainsFunc([]string{"cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret", "cert-manager.io/inject-apiserver-ca"}, isInjected) {
		return ready("")
	}
	for _, hook := range Items(in.Object, "webhooks") {
		if text(hook, "clientConfig", "caBundle") == "" {
			return unverifiedAfter(in, progressing("waiting for cert-manager to inject the CA"), time.Minute, "cert-manager has not injected the CA")
		}
	}
	return ready("")
}
