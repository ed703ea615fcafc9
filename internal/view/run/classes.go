package run

import "deployer/track/class"

// An aboutClass is what the report of a failure knows of its class, beside what package class has: what a release may have changed
// to cause it, and what to try.
type aboutClass struct {
	next          []suggestionRule
	podFields     []string // of a pod template, outside of containers, that may cause it
	suspects      []string // the fields to look at first, by a part of their names
	configuration bool     // what pods read from ConfigMaps and Secrets may cause it
	scale         bool     // the counts and limits of the workload itself may
	template      bool     // any field of the pod template may, also a label: what is refused, is refused by rules that nobody here knows
	object        bool     // any field of the object may: the API server has refused it as a whole
	unit          string   // of what is counted: "crash"; empty is "attempt"
	uncounted     bool     // what is counted is another problem's, which was there when this one came
}

// A suggestionRule is a suggestion with places for names: {ns}, {kind}, {name}, {pod}, {container}, {image}, {node}; see suggestions
// for the others. One whose place has no name is left out, as is one that says what another has said.
type suggestionRule struct{ what, command string }

var (
	describePod        = suggestionRule{"describe the pod", "kubectl -n {ns} describe pod {pod}"}
	describeObject     = suggestionRule{"describe the object", "kubectl -n {ns} describe {kind} {name}"}
	describeNode       = suggestionRule{"describe the node", "kubectl describe node {node}"}
	describeLimits     = suggestionRule{"describe the limits", "kubectl -n {ns} describe resourcequota,limitrange"}
	listStorageClasses = suggestionRule{"list the storage classes", "kubectl get storageclass"}
	createMissing      = suggestionRule{"create what is missing", "kubectl -n {ns} create {creates} --from-literal=KEY=VALUE"}
	describeMissing    = suggestionRule{"describe what is missing", "kubectl -n {ns} describe {needs}"}
	checkImage         = suggestionRule{"check that the image was pushed", "crane manifest {image}"}
	checkPullSecrets   = suggestionRule{"check the pull secrets of the pod", "kubectl -n {ns} get pod {pod} -o jsonpath='{.spec.imagePullSecrets}'"}
	checkRegistry      = suggestionRule{"check that the registry answers", "crane manifest {image}"}
	previousLog        = suggestionRule{"show its full log", "kubectl -n {ns} logs {pod} -c {container} {previous}"}
	wholeLog           = suggestionRule{previousLog.what, "kubectl -n {ns} logs {pod} -c {container}"}
	presentLog         = suggestionRule{"show its log", wholeLog.command}
	findDeletion       = suggestionRule{"find out who did it", "kubectl -n {ns} get events --field-selector involvedObject.name={name}"}
)

// aboutClasses has a row for each class of which more is known than that its pod and its object can be described.
var aboutClasses = map[class.Class]aboutClass{
	class.InvalidImageName:   {next: []suggestionRule{checkImage, checkPullSecrets}, podFields: []string{"volumes"}, suspects: []string{"image"}},
	class.ImagePullPermanent: {next: []suggestionRule{checkImage, checkPullSecrets}, podFields: []string{"imagePullSecrets", "serviceAccountName", "volumes"}, suspects: []string{"image"}},
	class.ImagePullTransient: {next: []suggestionRule{describePod, checkRegistry}, podFields: []string{"imagePullSecrets", "volumes"}, suspects: []string{"image"}},
	class.ImageNeverPull:     {next: []suggestionRule{describePod, checkRegistry}, suspects: []string{"image"}},

	class.CrashLoop: {next: []suggestionRule{previousLog, wholeLog, describePod}, podFields: []string{"hostUsers", "securityContext", "volumes", "serviceAccountName"},
		configuration: true, unit: "crash"},
	class.ContainerEnded: {next: []suggestionRule{wholeLog, describePod}, podFields: []string{"restartPolicy", "hostUsers", "securityContext", "volumes", "serviceAccountName"},
		suspects: []string{"restartPolicy"}, configuration: true},
	class.OOMKilled:                   {next: []suggestionRule{previousLog, wholeLog, describePod}, podFields: []string{"resources"}, suspects: []string{"resources"}, configuration: true, unit: "crash"},
	class.BadCommand:                  {next: []suggestionRule{previousLog, wholeLog, describePod}, suspects: []string{"command", "args"}, configuration: true},
	class.LivenessProbeFailed:         {next: []suggestionRule{previousLog, wholeLog, describePod}, suspects: []string{"Probe"}, configuration: true, unit: "kill"},
	class.StartupProbeFailed:          {next: []suggestionRule{presentLog, describePod}, suspects: []string{"Probe"}, configuration: true},
	class.ReadinessProbeFailed:        {next: []suggestionRule{presentLog, describePod}, podFields: []string{"readinessGates", "hostNetwork", "dnsPolicy", "serviceAccountName"}, suspects: []string{"Probe"}, configuration: true},
	class.ConfigError:                 {next: []suggestionRule{createMissing, describeMissing, describePod}, podFields: []string{"volumes"}, configuration: true},
	class.ContainerCreateFailed:       {podFields: []string{"hostUsers", "securityContext", "runtimeClassName", "volumes"}},
	class.ContainerCreateFailedOnNode: {next: []suggestionRule{describePod, describeNode}},

	class.Unschedulable: {next: []suggestionRule{describePod, {"see what the nodes have left", "kubectl describe nodes"}},
		podFields: []string{"resources", "nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "volumes", "runtimeClassName", "priorityClassName"}, suspects: []string{"resources"}, scale: true},
	class.NoNodeFits: {next: []suggestionRule{describePod, {"list the claims", "kubectl -n {ns} get {claims}"}, {"compare with the nodes", "kubectl get {nodes} --show-labels"}},
		podFields: []string{"nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "volumes", "runtimeClassName", "resourceClaims"}, scale: true},
	class.ResourceClaimUnallocated: {next: []suggestionRule{{"describe the claims", "kubectl -n {ns} describe resourceclaims,resourceclaimtemplates"}, {"list the devices", "kubectl get deviceclasses,resourceslices"}},
		podFields: []string{"resourceClaims", "nodeSelector", "affinity", "tolerations"}, scale: true},
	class.WaitingForNode:       {podFields: []string{"resources", "nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "priorityClassName"}},
	class.WaitingForRoom:       {podFields: []string{"resources", "priorityClassName"}},
	class.SchedulingGated:      {podFields: []string{"schedulingGates"}},
	class.Evicted:              {podFields: []string{"resources", "priorityClassName"}},
	class.NodeRefused:          {next: []suggestionRule{describePod, describeNode}},
	class.OldPodStays:          {next: []suggestionRule{describePod, describeNode}},
	class.PodSandboxFailed:     {next: []suggestionRule{describePod, describeNode}, podFields: []string{"hostUsers", "hostNetwork", "runtimeClassName", "securityContext"}},
	class.MultiAttach:          {next: []suggestionRule{describePod, describeNode}, podFields: []string{"volumes", "nodeSelector", "affinity"}},
	class.MountFailed:          {next: []suggestionRule{describePod, describeNode}, podFields: []string{"volumes", "securityContext"}},
	class.MountedObjectMissing: {next: []suggestionRule{createMissing, describeMissing, describePod}, podFields: []string{"volumes"}, configuration: true},
	class.ClaimUnbound:         {next: []suggestionRule{{"describe the claims", "kubectl -n {ns} describe pvc"}, listStorageClasses}, podFields: []string{"volumes"}},
	class.ProvisioningFailed:   {next: []suggestionRule{describeObject, listStorageClasses}},

	class.AdmissionDenied:       {next: []suggestionRule{{"show the rule", "kubectl get {rule}"}, describeObject}, template: true},
	class.InvalidPod:            {template: true},
	class.PodSecurity:           {next: []suggestionRule{{"show the PodSecurity level", "kubectl get namespace {ns} --show-labels"}}, podFields: []string{"securityContext", "hostUsers", "hostNetwork", "hostPID", "volumes"}},
	class.LimitRangeViolated:    {next: []suggestionRule{describeLimits}, podFields: []string{"resources"}, suspects: []string{"resources"}},
	class.QuotaExceeded:         {next: []suggestionRule{describeLimits}, podFields: []string{"resources"}, suspects: []string{"resources"}, scale: true},
	class.QuotaDeadlock:         {next: []suggestionRule{describeLimits, {"raise the quota, or let old pods go first: maxSurge: 0", ""}}, podFields: []string{"resources"}, suspects: []string{"resources"}, scale: true},
	class.ServiceAccountMissing: {podFields: []string{"serviceAccountName"}},
	class.PriorityClassMissing:  {podFields: []string{"priorityClassName"}},

	class.JobFailed:        {next: []suggestionRule{wholeLog, describeObject}, configuration: true, scale: true},
	class.PodFailed:        {next: []suggestionRule{wholeLog, describeObject}, configuration: true},
	class.ProgressDeadline: {configuration: true, scale: true, uncounted: true},
	class.NoProgress:       {configuration: true, scale: true, uncounted: true},
	class.Timeout:          {next: []suggestionRule{wholeLog, describePod, describeObject}, configuration: true, scale: true, uncounted: true},
	class.Deleted:          {next: []suggestionRule{findDeletion}},
	class.Replaced:         {next: []suggestionRule{findDeletion}},

	classApplyFailed: {object: true},
	classRejected:    {object: true},
	classStayed:      {object: true},
}
