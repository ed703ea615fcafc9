package class

import "time"

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
