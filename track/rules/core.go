package rules

import (
	"strings"
	"time"

	"deployer/track/class"
)

// pod: one that restarts for ever is ready when it serves, another one when it
// has succeeded. https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/
func pod(in Input) Verdict {
	o := in.Object.Object
	phase := text(o, "status", "phase")
	switch phase {
	case "Succeeded":
		return ready("succeeded")
	case "Failed":
		message := text(o, "status", "reason")
		if m := oneLine(text(o, "status", "message")); m != "" {
			message = strings.TrimPrefix(message+": "+m, ": ")
		}
		return failed(class.PodFailed, message)
	}
	policy := text(o, "spec", "restartPolicy")
	serves := policy == "" || policy == "Always"
	if serves && !in.MustComplete && hasStatus(condition(in.Object, "Ready"), "True") {
		return ready("")
	}
	v := progressing(strings.ToLower(phase))
	if phase == "Running" && serves && !in.MustComplete {
		v.Message = "running, not ready"
	}
	if !serves || in.MustComplete {
		v.NoProgress = -1
	}
	return v
}

// volumeClaim: a claim whose class binds with the first consumer stays pending until
// a pod uses it. Only an event says so.
// k8s.io/kubernetes/pkg/controller/volume/persistentvolume/pv_controller.go
func volumeClaim(in Input) Verdict {
	o := in.Object.Object
	switch text(o, "status", "phase") {
	case "Bound":
		return ready("bound")
	case "Lost":
		return failed(class.VolumeLost, "the volume "+text(o, "spec", "volumeName")+" of the claim is lost")
	}
	if in.Events["WaitForFirstConsumer"].Count+in.Events["WaitForPodScheduled"].Count > 0 {
		v := ready("waits for its first pod")
		v.Notes = []string{"not bound yet: the volume is made for the first pod that uses it"}
		return v
	}
	return refusedByController(in, "ProvisioningFailed", class.Provisioning, progressing("waiting for a volume"))
}

// service: only load balancers have something to wait for.
func service(in Input) Verdict {
	o := in.Object.Object
	if text(o, "spec", "type") != "LoadBalancer" {
		return ready("")
	}
	if len(list(o, "status", "loadBalancer", "ingress")) > 0 {
		return ready("has an address")
	}
	if len(list(o, "spec", "externalIPs")) > 0 {
		return ready("has external addresses")
	}
	v := refusedByController(in, "SyncLoadBalancerFailed", class.LoadBalancer, progressing("waiting for an address of the load balancer"))
	answered := v.Phase == Failed || in.Events["EnsuringLoadBalancer"].Count > 0
	for _, f := range in.Object.GetFinalizers() {
		answered = answered || f == "service.kubernetes.io/load-balancer-cleanup"
	}
	if answered {
		return v
	}
	in.Workloads = Workloads{} // no workload of the release hands out addresses
	return unverifiedAfter(in, v, time.Minute, "no load-balancer controller answered")
}

// refusedByController adds to what is waited for why its controller has refused it, and fails
// when it has done so often enough.
func refusedByController(in Input, reason string, c class.Class, v Verdict) Verdict {
	event := in.Events[reason]
	switch {
	case event.Count >= class.InfoOf(c).Attempts:
		return failed(c, event.Message)
	case event.Count > 0:
		v.Message += withColon(event.Message)
	}
	return v
}

// unverifiedAfter gives an object that no controller appears to manage some time, and
// then calls it ready without proof. The time begins when the workloads of the
// release are ready: one of them may look after it. An object that the release
// left as it was has had its time.
func unverifiedAfter(in Input, v Verdict, patience time.Duration, note string) Verdict {
	if in.Workloads.Busy {
		v.RecheckAfter = workloadsRecheck
		return v
	}
	from := in.Applied
	if in.Workloads.ReadySince.After(from) {
		from = in.Workloads.ReadySince
	}
	if left := patience - in.Now.Sub(from); left > 0 && in.Changed {
		v.RecheckAfter = left
		return v
	}
	return Verdict{Phase: Ready, Unverified: true, Message: note, Notes: []string{note}}
}

const workloadsRecheck = 5 * time.Second // until it is looked again whether workloads are on their way

func namespace(in Input) Verdict {
	if text(in.Object.Object, "status", "phase") == "Terminating" {
		return failed(class.Terminating, "the namespace is being deleted")
	}
	return ready("")
}

func disruptionBudget(in Input) Verdict {
	v := ready("")
	if c := condition(in.Object, "DisruptionAllowed"); hasStatus(c, "False") && text(c, "reason") == "SyncFailed" {
		v.Notes = []string{conditionText(c)}
	}
	return v
}
