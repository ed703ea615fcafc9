// Package class names the kinds of problem a rollout can have.
//
// The names are a stable interface: programs switch on them in reports. Names
// are added, never renamed.
package class

import "time"

// A Class is one kind of problem. The empty class means that nothing is wrong.
type Class string

// Problems of images.
const (
	InvalidImageName   Class = "image_name_invalid"
	ImageNeverPull     Class = "image_never_pull" // imagePullPolicy is Never, and the node doesn't have it
	ImagePullPermanent Class = "image_pull_permanent"
	ImagePullTransient Class = "image_pull_transient"
)

// Problems of containers.
const (
	CrashLoop                   Class = "crash_loop"
	ContainerEnded              Class = "container_ended" // and isn't started again, by its restart policy
	BadCommand                  Class = "bad_command"     // the command can't be run: exit codes 126 and 127, StartError
	OOMKilled                   Class = "oom_killed"
	ConfigError                 Class = "config_error"     // a ConfigMap, a Secret or a key of them is missing
	ContainerCreateFailed       Class = "container_create" // the runtime couldn't create or start it; also lifecycle hooks
	ContainerCreateFailedOnNode Class = "container_create_node"
	UserRefused                 Class = "run_as_non_root" // the image runs as root, or as a user without a number
	ReadinessProbeFailed        Class = "readiness_probe"
	StartupProbeFailed          Class = "startup_probe"
	LivenessProbeFailed         Class = "liveness_probe" // killed by a liveness or startup probe
)

// Problems of pods.
const (
	Unschedulable            Class = "unschedulable"
	NoNodeFits               Class = "unschedulable_structural" // selectors, taints, volumes: no node will ever do
	WaitingForNode           Class = "unschedulable_scaling_up"
	WaitingForRoom           Class = "unschedulable_terminating" // old pods still hold the resources
	SchedulingGated          Class = "scheduling_gated"
	ClaimUnbound             Class = "claim_unbound"  // its volume claims have no volumes
	ResourceClaimUnallocated Class = "resource_claim" // devices (dynamic resource allocation)
	ReadinessGateUnmet       Class = "readiness_gate" // all containers are ready, and another controller hasn't said that the pod is
	MountedObjectMissing     Class = "mount_missing_object"
	MountFailed              Class = "mount_error"
	MultiAttach              Class = "multi_attach"
	PodSandboxFailed         Class = "pod_sandbox"   // network or runtime of the node
	Evicted                  Class = "evicted"       // also preempted, node shut down
	NodeRefused              Class = "node_refused"  // its kubelet doesn't admit the pod
	OldPodStays              Class = "old_pod_stays" // the rollout waits for a pod that can't go, or can't become ready
	PodFailed                Class = "pod_failed"
)

// Problems of controllers that create pods.
const (
	PodSecurity           Class = "pod_security"
	AdmissionDenied       Class = "admission_denied" // a webhook or a ValidatingAdmissionPolicy
	InvalidPod            Class = "invalid_pod"
	LimitRangeViolated    Class = "limit_range"
	PriorityClassMissing  Class = "priority_class_missing"
	ServiceAccountMissing Class = "service_account_missing"
	QuotaExceeded         Class = "quota"
	QuotaDeadlock         Class = "quota_deadlock"
	PodCreateTransient    Class = "pod_create_transient" // a webhook that doesn't answer, an API server in trouble
	JobFailed             Class = "job_failed"
	ProgressDeadline      Class = "progress_deadline"
	NoProgress            Class = "no_progress"
	Timeout               Class = "timeout"
)

// Problems of other objects.
const (
	Replaced           Class = "replaced" // another object took the name
	Deleted            Class = "deleted"
	Terminating        Class = "terminating"
	NamesRejected      Class = "crd_names_rejected"
	VolumeLost         Class = "volume_lost"
	ProvisioningFailed Class = "provisioning_failed"
	LoadBalancerFailed Class = "load_balancer"
	ScaleTargetMissing Class = "scale_target_missing"
	ConditionFailed    Class = "condition_failed" // the object's own status says so
	RuleFailed         Class = "rule_failed"      // the user's rule says so
)

// Scope says what one pod's problem means for the others of its revision.
type Scope int

// The scopes.
const (
	PerPod        Scope = iota // another pod of the revision may do better
	Deterministic              // the same template gives the same result everywhere
	Informational              // never fails a workload by itself
)

// An Info is what is known about a class.
type Info struct {
	Title    string        // a heading for people: "Image not found"
	Scope    Scope         // what it means for other pods
	Grace    time.Duration // how long it must last without interruption before it is final
	Attempts int           // how often it must have occurred before it is final; 0 and 1 mean once

	Unseen    time.Duration // how much later it has occurred often enough, whether or not that was seen; 0 where each attempt is seen
	Ran       bool          // it is about what has run: a Job's controller counts that itself
	RunsAgain bool          // a container ends again and again, and another run may heal it
	Logs      bool          // logs may tell more about it
	Stays     bool          // waiting longer never heals it
}

// InfoOf returns the Info of c. An unknown class is informational and its title is its
// name.
func InfoOf(c Class) Info {
	if info, ok := table[c]; ok {
		return info
	}
	return Info{Title: string(c), Scope: Informational}
}
