// Package class names the kinds of problem a rollout can have.
//
// The names are a stable interface: programs switch on them in reports. Names
// are added, never renamed.
package class

import (
	"time"
)

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

// crashGrace is over before the third crash with the kubelet's default back-off. It matters only
// where the back-off is shorter: what a container needs at its start still has this long to appear.
const crashGrace = 10 * time.Second

// unseenRetry is how long the kubelet waits at least before it tries again.
const unseenRetry = 10 * time.Second

// table has the Info of each class. The numbers follow the
// kubelet: images are pulled again after 10 s, 20 s … 300 s, containers are
// restarted at once, then after 10 s, 20 s … 300 s.
// https://kubernetes.io/docs/concepts/containers/images/#imagepullbackoff
// https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#restart-policy
var table = map[Class]Info{
	InvalidImageName:   {Title: "Image name is invalid", Scope: Deterministic},
	ImageNeverPull:     {Title: "Image is not on the node and may not be pulled", Grace: 10 * time.Second},
	ImagePullPermanent: {Title: "Image can't be pulled", Scope: Deterministic, Grace: 15 * time.Second, Attempts: 2, Unseen: unseenRetry},
	ImagePullTransient: {Title: "Registry doesn't answer", Grace: 3 * time.Minute},

	CrashLoop:                   {Title: "Container crashes", Grace: crashGrace, Attempts: 3, Ran: true, RunsAgain: true, Logs: true},
	ContainerEnded:              {Title: "Container has ended", Grace: 5 * time.Second, Ran: true, Logs: true},
	BadCommand:                  {Title: "Container's command can't be run", Scope: Deterministic, Attempts: 2, Ran: true, Logs: true},
	OOMKilled:                   {Title: "Container runs out of memory", Grace: crashGrace, Attempts: 3, Ran: true, RunsAgain: true, Logs: true},
	ConfigError:                 {Title: "Configuration is missing", Scope: Deterministic, Grace: 10 * time.Second},
	ContainerCreateFailed:       {Title: "Container can't be created", Grace: 20 * time.Second, Attempts: 2, Unseen: unseenRetry},
	ContainerCreateFailedOnNode: {Title: "Node can't create the container", Grace: 2 * time.Minute},
	UserRefused:                 {Title: "Container may not run as its user", Scope: Deterministic, Grace: 5 * time.Second},
	ReadinessProbeFailed:        {Title: "Readiness probe fails", Scope: Informational, Logs: true},
	StartupProbeFailed:          {Title: "Startup probe fails", Scope: Informational, Logs: true},
	LivenessProbeFailed:         {Title: "Container is killed by its probe", Grace: crashGrace, Attempts: 3, Ran: true, RunsAgain: true, Logs: true},

	Unschedulable:            {Title: "No node has room for the pod", Grace: 5 * time.Minute},
	NoNodeFits:               {Title: "No node fits the pod", Grace: time.Minute},
	WaitingForNode:           {Title: "Waiting for a new node", Grace: 10 * time.Minute},
	WaitingForRoom:           {Title: "Waiting for old pods to terminate", Scope: Informational},
	SchedulingGated:          {Title: "Pod is held by a scheduling gate", Scope: Informational},
	ClaimUnbound:             {Title: "Volume claim has no volume", Grace: 5 * time.Minute},
	ReadinessGateUnmet:       {Title: "Pod waits for its readiness gate", Scope: Informational},
	ResourceClaimUnallocated: {Title: "ResourceClaim can't be allocated", Grace: 5 * time.Minute},
	MountedObjectMissing:     {Title: "Mounted object is missing", Grace: 30 * time.Second, Attempts: 2},
	MountFailed:              {Title: "Volume can't be mounted", Grace: 3 * time.Minute},
	MultiAttach:              {Title: "Volume is still attached elsewhere", Scope: Informational},
	PodSandboxFailed:         {Title: "Node can't start the pod", Grace: 2 * time.Minute},
	Evicted:                  {Title: "Pod was evicted", Scope: Informational, Ran: true},
	NodeRefused:              {Title: "Node refuses the pod", Scope: Informational, Ran: true},
	OldPodStays:              {Title: "Old pod holds the rollout up", Grace: 3 * time.Minute},
	PodFailed:                {Title: "Pod failed", Ran: true, Logs: true},

	PodSecurity:           {Title: "Pod is refused by PodSecurity", Scope: Deterministic, Grace: 5 * time.Second},
	AdmissionDenied:       {Title: "Pod is refused by an admission rule", Scope: Deterministic, Grace: 5 * time.Second},
	InvalidPod:            {Title: "Pod is invalid", Scope: Deterministic, Grace: 5 * time.Second},
	LimitRangeViolated:    {Title: "Pod breaks a LimitRange", Scope: Deterministic, Grace: 5 * time.Second},
	PriorityClassMissing:  {Title: "PriorityClass is missing", Scope: Deterministic, Grace: 5 * time.Second},
	ServiceAccountMissing: {Title: "ServiceAccount is missing", Scope: Deterministic, Grace: 15 * time.Second},
	QuotaExceeded:         {Title: "Quota is used up", Grace: time.Minute},
	QuotaDeadlock:         {Title: "Quota leaves no room for a rolling update", Grace: 30 * time.Second},
	PodCreateTransient:    {Title: "Pods can't be created", Grace: 2 * time.Minute},
	JobFailed:             {Title: "Job failed", Logs: true, Stays: true},
	ProgressDeadline:      {Title: "Progress deadline exceeded", Logs: true},
	NoProgress:            {Title: "No progress", Logs: true},
	Timeout:               {Title: "Timed out", Logs: true},

	Replaced:           {Title: "Object was replaced", Grace: 2 * time.Second, Stays: true},
	Deleted:            {Title: "Object was deleted", Grace: 2 * time.Second, Stays: true},
	Terminating:        {Title: "Object is being deleted", Grace: 10 * time.Second},
	NamesRejected:      {Title: "Names of the CustomResourceDefinition are taken", Grace: 2 * time.Second},
	VolumeLost:         {Title: "Volume is lost", Grace: 2 * time.Second, Stays: true},
	ProvisioningFailed: {Title: "Volume can't be provisioned", Grace: time.Minute, Attempts: 3},
	LoadBalancerFailed: {Title: "Load balancer can't be set up", Grace: 2 * time.Minute, Attempts: 3},
	ScaleTargetMissing: {Title: "Scale target is missing", Grace: 30 * time.Second},
	ConditionFailed:    {Title: "Object reports a failure"},
	RuleFailed:         {Title: "Failure rule matches"},
}
