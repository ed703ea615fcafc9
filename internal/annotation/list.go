package annotation

import (
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Annotations about how an object is changed.
var (
	Conflicts = define(Info{
		Name: Prefix + "conflicts", Values: "`take`, `fail`, `yield`",
		Doc:      "what to do with fields that another manager owns; overrides `--conflicts`",
		Packages: []string{"apply"},
	}, oneOf("take", "fail", "yield"))

	Recreate = define(Info{
		Name: Prefix + "recreate", Values: `"true"`,
		Doc:      "allows deployer to recreate the object when an immutable field changes",
		Packages: []string{"apply"},
	}, exactlyTrue)

	Generated = define(Info{
		Name: Prefix + "generated", Values: "`keep`, `renew`",
		Doc:      "what to do with values that the object's template generates; overrides `--generated`",
		Packages: []string{"chart"},
	}, oneOf("keep", "renew"))

	// HookRun tells the objects of two runs of a hook apart: "HASH.ATTEMPT.RUN".
	HookRun = define(Info{
		Name: Prefix + "hook-run", Values: "written by deployer",
		Doc:      "the run that created the object of a hook",
		Packages: []string{"apply"},
	}, anyText)
)

// Annotations about the order of objects. OrderOf reads them together.
var (
	Weight = define(Info{
		Name: Prefix + "weight", Values: "a whole number",
		Doc:      "the object is applied after all objects of a lower weight are ready",
		Packages: []string{"apply", "chart"},
	}, wholeNumber, alias[int]{WerfPrefix + "weight", wholeNumber})

	DependsOn = define(Info{
		Name: Prefix + "depends-on", Values: "`KIND/NAME`, … each with `=ready` or `=present`",
		Doc:      "objects of the release or of the cluster that the object waits for",
		Packages: []string{"apply"},
	}, dependencyList(false), alias[[]Dependency]{WerfPrefix + "deploy-dependency-*", dependencyProperties(false)},
		alias[[]Dependency]{"*.dependency.werf.io", dependencyProperties(false)})

	ExternalDependencies = define(Info{
		Name: Prefix + "external-dependencies", Values: "`KIND/NAME`, … each with `=ready` or `=present`",
		Doc:      "objects that something outside the release creates, and that the object waits for",
		Packages: []string{"apply"},
	}, dependencyList(true), alias[[]Dependency]{WerfPrefix + "external-dependency-*", dependencyProperties(true)},
		alias[[]Dependency]{"*.external-dependency.werf.io", dependencyProperties(true)},
		alias[[]Dependency]{"*.external-dependency.werf.io/resource", dependencyResource})
)

// Annotations about how an object is tracked.
var (
	Track = define(Info{
		Name: Prefix + "track", Values: "`full`, `none`, `apply`, `background`",
		Doc:      "`none` and `apply`: ready when applied; `background`: watched while others are waited for",
		Packages: []string{"track"},
	}, oneOf("full", "none", "apply", "background"),
		alias[string]{WerfPrefix + "track-termination-mode", translated(map[string]string{"WaitUntilResourceReady": "full", "NonBlocking": "background"})})

	TrackAs = define(Info{
		Name: Prefix + "track-as", Values: "`job`, `service`",
		Doc:      "whether a Pod must succeed or be ready",
		Packages: []string{"track"}, Kinds: []schema.GroupKind{pod},
	}, oneOf("job", "service"))

	Ready = define(Info{
		Name: Prefix + "ready", Values: "a CEL expression",
		Doc:      "true when the object is ready",
		Packages: []string{"track"},
	}, anyText)

	Failed = define(Info{
		Name: Prefix + "failed", Values: "a CEL expression",
		Doc:      "true when the object has failed",
		Packages: []string{"track"},
	}, anyText)

	InstancesReady = define(Info{
		Name: Prefix + "instances-ready", Values: "a CEL expression",
		Doc:      "true when a custom resource of this definition is ready",
		Packages: []string{"track"}, Kinds: []schema.GroupKind{definition},
	}, anyText)

	InstancesFailed = define(Info{
		Name: Prefix + "instances-failed", Values: "a CEL expression",
		Doc:      "true when a custom resource of this definition has failed",
		Packages: []string{"track"}, Kinds: []schema.GroupKind{definition},
	}, anyText)

	Timeout = define(Info{
		Name: Prefix + "timeout", Values: "a duration: `90s`",
		Doc:      "the object fails if it isn't ready in this time",
		Packages: []string{"track"},
	}, duration)

	NoProgressTimeout = define(Info{
		Name: Prefix + "no-progress-timeout", Values: "a duration: `5m`",
		Doc:      "the object fails if it makes no progress for this long",
		Packages: []string{"track"},
	}, duration, alias[time.Duration]{WerfPrefix + "no-activity-timeout", duration})

	RolloutRequired = define(Info{
		Name: Prefix + "rollout-required", Values: "`full`, `max-unavailable`, `none`, `80%`",
		Doc:      "how much of the rollout must be done for the object to be ready",
		Packages: []string{"track"}, Kinds: []schema.GroupKind{deployment, statefulSet, daemonSet},
	}, rolloutShare)

	// FailuresAllowed is not for Jobs: they count by themselves (spec.backoffLimit).
	FailuresAllowed = define(Info{
		Name: Prefix + "failures-allowed", Values: "a number",
		Doc:      "how many crashes of a container are tolerated",
		Packages: []string{"track"}, Kinds: []schema.GroupKind{deployment, statefulSet, daemonSet, replicaSet, pod},
	}, count, alias[int]{WerfPrefix + "failures-allowed-per-replica", count})

	FailMode = define(Info{
		Name: Prefix + "fail-mode", Values: "`fail`, `warn`, `ignore`, `late`",
		Doc:      "what the release does if the object fails",
		Packages: []string{"track"},
	}, oneOf("fail", "warn", "ignore", "late"), alias[string]{WerfPrefix + "fail-mode", translated(map[string]string{
		"FailWholeDeployProcessImmediately": "fail", "HopeUntilEndOfDeployProcess": "late", "IgnoreAndContinueDeployProcess": "ignore",
	})})

	Logs = define(Info{
		Name: Prefix + "logs", Values: "`none`, `failed`, `all`, `live`",
		Doc:      "which logs of its pods are shown",
		Packages: []string{"track"}, Kinds: withPods,
	}, oneOf("none", "failed", "all", "live"), alias[string]{WerfPrefix + "skip-logs", noLogs})

	LogsContainers = define(Info{
		Name: Prefix + "logs-containers", Values: "names, separated by commas",
		Doc:      "the containers whose logs are shown",
		Packages: []string{"track"}, Kinds: withPods,
	}, names, alias[map[string]bool]{WerfPrefix + "show-logs-only-for-containers", names})

	LogsSkipContainers = define(Info{
		Name: Prefix + "logs-skip-containers", Values: "names, separated by commas",
		Doc:      "the containers whose logs are not shown",
		Packages: []string{"track"}, Kinds: withPods,
	}, names, alias[map[string]bool]{WerfPrefix + "skip-logs-for-containers", names})

	LogsPods = define(Info{
		Name: Prefix + "logs-pods", Values: "a number",
		Doc:      "how many pods' logs are shown",
		Packages: []string{"track"}, Kinds: withPods,
	}, count, alias[int]{WerfPrefix + "show-logs-only-for-number-of-replicas", count})

	LogsRegex = define(Info{
		Name: Prefix + "logs-regex", Values: "a regular expression",
		Doc:      "the log lines that are shown",
		Packages: []string{"track"}, Kinds: withPods,
	}, regularExpression, alias[*regexp.Regexp]{WerfPrefix + "log-regex", regularExpression})

	LogsRegexFor = define(Info{
		Name: Prefix + "logs-regex-for-*", Values: "a regular expression",
		Doc:      "the same for one container",
		Packages: []string{"track"}, Kinds: withPods,
	}, regularExpression, alias[*regexp.Regexp]{WerfPrefix + "log-regex-for-*", regularExpression})

	LogsSkipRegex = define(Info{
		Name: Prefix + "logs-skip-regex", Values: "a regular expression",
		Doc:      "the log lines that are not shown",
		Packages: []string{"track"}, Kinds: withPods,
	}, regularExpression, alias[*regexp.Regexp]{WerfPrefix + "log-regex-skip", regularExpression})

	LogsSkipRegexFor = define(Info{
		Name: Prefix + "logs-skip-regex-for-*", Values: "a regular expression",
		Doc:      "the same for one container",
		Packages: []string{"track"}, Kinds: withPods,
	}, regularExpression, alias[*regexp.Regexp]{WerfPrefix + "log-regex-skip-for-*", regularExpression})

	Events = define(Info{
		Name: Prefix + "events", Values: "`true`, `false`",
		Doc:      "whether to show Kubernetes' warnings about the object and its new pods",
		Packages: []string{"track"},
	}, boolean, alias[bool]{WerfPrefix + "show-service-messages", boolean})
)

// Annotations about what is confidential.
var (
	Sensitive = define(Info{
		Name: Prefix + "sensitive", Values: "`true`, `false`",
		Doc:      "hides all of the object except its name, labels and type, and the logs of its pods; any other value counts as `true`",
		Packages: []string{"internal/hide", "track"},
	}, boolean, alias[bool]{WerfPrefix + "sensitive", boolean})

	SensitivePaths = define(Info{
		Name: Prefix + "sensitive-paths", Values: "paths, separated by commas",
		Doc:      "these fields of the object are hidden",
		Packages: []string{"internal/hide"},
	}, anyText, alias[string]{WerfPrefix + "sensitive-paths", anyText})
)

// ofWerf are the annotations of Nelm and werf without a counterpart, and what to use
// instead. Empty: nothing is needed, because deployer does so anyway or the annotation only
// informs. (Readiness probes never fail a release before its deadline.)
var ofWerf = map[string]string{
	WerfPrefix + "replicas-on-creation": "leave spec.replicas out of the template, or use an autoscaler: its replicas are left unchanged",
	WerfPrefix + "ownership":            "objects belong to their release",
	WerfPrefix + "delete-policy":        "use helm.sh/hook-delete-policy, helm.sh/resource-policy or deployer.io/recreate",
	WerfPrefix + "deploy-on":            "use helm.sh/hook",

	WerfPrefix + "ignore-readiness-probe-fails-for-*": "",
	WerfPrefix + "version":                            "",
	WerfPrefix + "release-channel":                    "",
}

// The kinds that annotations are for.
var (
	deployment  = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	statefulSet = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	daemonSet   = schema.GroupKind{Group: "apps", Kind: "DaemonSet"}
	replicaSet  = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
	job         = schema.GroupKind{Group: "batch", Kind: "Job"}
	pod         = schema.GroupKind{Kind: "Pod"}
	definition  = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

	withPods = []schema.GroupKind{deployment, statefulSet, daemonSet, replicaSet, job, pod}
)
