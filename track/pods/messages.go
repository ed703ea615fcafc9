package pods

import (
	"cmp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"deployer/internal/lazyregexp"
	"deployer/track/class"
	"deployer/track/finding"
)

// Messages of containerd, CRI-O and the kubelet. The reasons are in
// k8s.io/kubernetes/pkg/kubelet/images/types.go.
var (
	permanentPull = lazyregexp.New(`(?i)not found|manifest unknown|name unknown|repository does not exist|pull access denied|` +
		`unauthorized|authentication required|denied|forbidden|no match for platform|no matching manifest|invalid reference format|signature`)
	transientPull = lazyregexp.New(`(?i)timeout|timed out|i/o|tls|x509|toomanyrequests|too many requests|rate limit|no such host|` +
		`connection refused|connection reset|server misbehaving|unavailable|EOF|\b5\d\d\b|\b429\b|deadline exceeded|network is unreachable|qps exceeded`)
	// lacksTag matches what a registry says of an image that it doesn't have.
	lacksTag = lazyregexp.New(`(?i)not found|manifest unknown|name unknown|does not exist`)
	// tagUnclear matches what doesn't prove that, even if lacksTag matches: the registry may hide the image from
	// anonymous users, or lack only a part of it.
	tagUnclear = lazyregexp.New(`(?i)denied|authori[sz]|authenticat|forbidden|blob|content at|layer`)
	badCommand = lazyregexp.New(`(?i)executable file not found|no such file or directory|permission denied|exec format error|` +
		`not a directory|is a directory`)
	nodeTrouble = lazyregexp.New(`(?i)context deadline exceeded|no space left|failed to sync|connection refused|cannot allocate memory`)
	// refusedUser matches what the kubelet says of a container that must not run as root, or as nobody knows whom.
	// k8s.io/kubernetes/pkg/kubelet/kuberuntime/security_context.go
	refusedUser = lazyregexp.New(`^(container has runAsNonRoot and image .*?|container's runAsUser breaks non-root policy)(?: \(pod: .*\))?$`)
	// neverExecuted matches the log of a container if the kernel refused to execute its command. The
	// runtime doesn't report this, because runc has already started the container.
	// github.com/opencontainers/runc/libcontainer/standard_init_linux.go
	neverExecuted = lazyregexp.New(`^(?:standard_init_linux\.go:\d+: exec user process caused: .+|exec \S+: (?:exec format error|no such file or directory|permission denied))$`)
)

// pullClass returns the class of a failed image pull: permanent when a retry can't help.
func pullClass(reason, message, image string) class.Class {
	message = withoutImage(message, image)
	switch {
	case reason == "SignatureValidationFailed":
		return class.ImagePullPermanent
	case reason == "RegistryUnavailable", transientPull().MatchString(message):
		return class.ImagePullTransient
	case permanentPull().MatchString(message):
		return class.ImagePullPermanent
	}
	return class.ImagePullTransient
}

// registryLacks reports whether a registry has answered that it doesn't have the image, or
// none for the platform: only somebody who pushes it can change that.
func registryLacks(message, image string) bool {
	message = withoutImage(message, image)
	return lacksTag().MatchString(message) && !tagUnclear().MatchString(message)
}

// quotedText matches quoted image references in messages.
var quotedText = lazyregexp.New(`"[^"]*"`)

// withoutImage removes the image from a message: its name may look like an error, such as a
// port 503 or the word timeout.
func withoutImage(message, image string) string {
	return strings.ReplaceAll(quotedText().ReplaceAllString(message, ""), image, "")
}

// messagePrefixes matches prefixes of kubelets and runtimes that say nothing specific.
var messagePrefixes = lazyregexp.New(`^(?:rpc error: code = (?:Unknown|NotFound) desc = |(?:Back-off pulling image "[^"]*"|ErrImagePull|Error|` +
	`[Ff]ailed to pull (?:and unpack )?image "[^"]*"|failed to create containerd task|failed to create shim task|failed to start container "[^"]*"|` +
	`OCI runtime create failed|runc create failed|unable to start container process|error during container init): )+`)

// withoutPrefixes removes messagePrefixes from a message, unless nothing else is left.
func withoutPrefixes(message string) string {
	return cmp.Or(messagePrefixes().ReplaceAllString(message, ""), message)
}

// withoutPreemption removes the part about preemption from a scheduler's message.
func withoutPreemption(message string) string {
	message, _, _ = strings.Cut(message, " preemption:")
	message = strings.TrimSuffix(message, " no new claims to deallocate,")
	if before, cut := strings.CutSuffix(message, ". not found"); cut { // no victims were
		return before + "."
	}
	return message
}

var (
	nodesTotal = lazyregexp.New(`^0/(\d+) nodes are available: `)
	nodesPart  = lazyregexp.New(`(?:^|, )(\d+) ([^,]+(?:, [^0-9][^,]*)*)`)
	// structuralReason matches reasons that remain until the nodes change.
	structuralReason = lazyregexp.New(`didn't match Pod's node affinity/selector|node\(s\) didn't match|untolerated taint \{|` +
		`had volume node affinity conflict|didn't satisfy plugin|` + noFreePorts + `|` + claimInUse)
	// passingTaint matches taints of nodes with a temporary problem. Newer schedulers don't
	// name taints ("untolerated taint(s)"), so their messages don't match.
	passingTaint = lazyregexp.New(`node\.kubernetes\.io/(not-ready|unreachable|disk-pressure|memory-pressure|network-unavailable)`)
)

// What the scheduler says of nodes on which other pods have what only one can have.
// k8s.io/kubernetes/pkg/scheduler/framework/plugins: nodeports, volumerestrictions
const (
	noFreePorts = "didn't have free ports for the requested pod ports"
	claimInUse  = "with ReadWriteOncePod access mode already in-use by another pod"
)

// exclusive is what that is.
var exclusive = map[string]string{noFreePorts: "host ports", claimInUse: "volume claim"}

// heldByPods matches messages about what is free when pods have gone.
var heldByPods = lazyregexp.New(`Insufficient|` + noFreePorts + `|` + claimInUse)

// unboundClaims is the scheduler's message for a pod that waits for volumes, not a node.
// k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding
const unboundClaims = "unbound immediate PersistentVolumeClaims"

// waitsForDevices matches the scheduler's messages about a pod whose ResourceClaims aren't there or can't be allocated.
// k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources
var waitsForDevices = lazyregexp.New(`(?i)cannot allocate all claims|allocate devices|resource ?claim|device ?class`)

// excludesEveryNode reports whether the scheduler's message excludes every node for
// reasons that don't pass by themselves.
// k8s.io/kubernetes/pkg/scheduler/framework/types.go FitError
func excludesEveryNode(message string) bool {
	if missingClaim().MatchString(message) {
		return true
	}
	m := nodesTotal().FindStringSubmatch(message)
	if m == nil {
		return false
	}
	total, _ := strconv.Atoi(m[1])
	covered := 0
	for _, part := range nodesPart().FindAllStringSubmatch(message[len(m[0]):], -1) {
		n, _ := strconv.Atoi(part[1])
		if structuralReason().MatchString(part[2]) && !passingTaint().MatchString(part[2]) {
			covered += n
		}
	}
	return total > 0 && covered >= total
}

// creationMessages maps messages of controllers that can't create pods to classes. The first
// match counts.
var creationMessages = []struct {
	match lazyregexp.Regexp
	class class.Class
}{
	{lazyregexp.New(`failed calling webhook|failed to call webhook`), class.PodCreateTransient},
	// The quota was made a moment ago, or the API server was started.
	{lazyregexp.New(`status unknown for quota|not yet ready to handle request`), class.PodCreateTransient},
	// A webhook that asks a registry about the image denies it also when the registry doesn't answer.
	{lazyregexp.New(`denied the request.*(i/o timeout|context deadline exceeded|connection (refused|reset)|no such host|server misbehaving|TOOMANYREQUESTS)`), class.PodCreateTransient},
	{lazyregexp.New(`violates PodSecurity`), class.PodSecurity},
	{lazyregexp.New(`exceeded quota:|failed quota:|insufficient quota to `), class.QuotaExceeded},
	{lazyregexp.New(`(maximum|minimum) \S+ usage per|limit to request ratio`), class.LimitRangeViolated},
	{lazyregexp.New(`no PriorityClass with name`), class.PriorityClassMissing},
	{lazyregexp.New(`error looking up service account`), class.ServiceAccountMissing},
	{lazyregexp.New(`admission webhook ".*" denied|denied the request|denied request`), class.AdmissionDenied},
	{lazyregexp.New(`being terminated`), class.Terminating},
	{lazyregexp.New(`is invalid|Invalid value|Unsupported value|Required value`), class.InvalidPod},
	{lazyregexp.New(`is forbidden`), class.AdmissionDenied},
}

// CreationFailureClass is the class of a controller's message that it can't create pods.
func CreationFailureClass(message string) class.Class {
	for _, rule := range creationMessages {
		if rule.match().MatchString(message) {
			return rule.class
		}
	}
	return class.PodCreateTransient
}

// eventClass is the class of problem that an event about a pod tells of; empty when it tells of none.
func eventClass(reason, message string) class.Class {
	switch reason {
	case "FailedMount", "FailedAttachVolume", "FailedMapVolume":
		switch {
		case strings.Contains(message, "Multi-Attach"):
			return class.MultiAttach
		case missingObject().MatchString(message), noSuchKey().MatchString(message):
			return class.MountedObjectMissing
		}
		return class.MountFailed
	case "FailedResourceClaimCreation":
		return class.ResourceClaimUnallocated
	case "FailedCreatePodSandBox", "FailedCreatePodSandbox":
		return class.PodSandboxFailed
	case "Unhealthy":
		if strings.HasPrefix(message, "Readiness") {
			return class.ReadinessProbeFailed
		}
		return class.LivenessProbeFailed
	case "Killing":
		if strings.Contains(message, "probe") {
			return class.LivenessProbeFailed
		}
	}
	return ""
}

// A volumeKey is a key of a ConfigMap or Secret that a volume asks for by name.
type volumeKey struct {
	Volume string
	finding.Missing
}

// Texts of the kubelet and the scheduler.
// k8s.io/kubernetes/pkg/kubelet/kubelet_pods.go, pkg/volume/secret, pkg/volume/configmap
var (
	missingObject = lazyregexp.New(`(?i)\b(secret|configmap)s? "([^"/]+)" not found`)
	missingKey    = lazyregexp.New(`(?i)couldn't find key (\S+) in (secret|configmap) ([^/\s]+/)?(\S+)`)
	noSuchKey     = lazyregexp.New(`(?i)references non-existent (secret|config) key: ([^\s,\]]+)`)
	ofVolume      = lazyregexp.New(`for volume "([^"]+)"`)
	missingDevice = lazyregexp.New(`(?i)(resourceclaim(?:template)?|device ?class)(?:e?s)?(?:\.resource\.k8s\.io)? (?:"(?:[^"/\s]+/)?([^"/\s]+)"(?: not found|$)|(\S+) (?:not found|does not exist))`)
	missingClaim  = lazyregexp.New(`persistentvolumeclaim "([^"]+)" not found`)
)

// Missing finds what a message about the pod calls missing.
func (p *Pod) Missing(message string) (finding.Missing, bool) {
	if m := missingObject().FindStringSubmatch(message); m != nil {
		return finding.Missing{Kind: kindOf(m[1]), Name: m[2]}, true
	}
	if m := missingKey().FindStringSubmatch(message); m != nil {
		return finding.Missing{Kind: kindOf(m[2]), Name: strings.Trim(m[4], `"'.,`), Key: m[1]}, true
	}
	if m := noSuchKey().FindStringSubmatch(message); m != nil {
		return p.missingVolumeKey(kindOf(m[1]), m[2], message)
	}
	if m := missingDevice().FindStringSubmatch(message); m != nil {
		return finding.Missing{Kind: deviceKinds[strings.ReplaceAll(strings.ToLower(m[1]), " ", "")], Name: cmp.Or(m[2], m[3])}, true
	}
	if m := missingClaim().FindStringSubmatch(message); m != nil {
		return finding.Missing{Kind: "PersistentVolumeClaim", Name: m[1]}, true
	}
	return finding.Missing{}, false
}

// missingVolumeKey finds whose key a volume asks for in vain: the message names only the
// volume, which may ask several objects for a key of that name.
func (p *Pod) missingVolumeKey(kind, key, message string) (finding.Missing, bool) {
	volume := ofVolume().FindStringSubmatch(message)
	if volume == nil {
		return finding.Missing{}, false
	}
	var found []finding.Missing
	for _, k := range p.Volumes.keys {
		if k.Volume == volume[1] && k.Kind == kind && k.Key == key {
			found = append(found, k.Missing)
		}
	}
	if len(found) != 1 {
		return finding.Missing{}, false
	}
	return found[0], true
}

// deviceKinds are the kinds of what a pod asks devices by, in lower case.
var deviceKinds = map[string]string{"resourceclaim": "ResourceClaim", "resourceclaimtemplate": "ResourceClaimTemplate", "deviceclass": "DeviceClass"}

func kindOf(word string) string {
	if strings.EqualFold(word, "secret") {
		return "Secret"
	}
	return "ConfigMap"
}

// addVolumeKeys records the keys that a volume asks for.
func (p *Pod) addVolumeKeys(v *corev1.Volume) {
	add := func(kind, name string, items []corev1.KeyToPath) {
		for _, item := range items {
			p.Volumes.keys = append(p.Volumes.keys, volumeKey{Volume: v.Name, Missing: finding.Missing{Kind: kind, Name: name, Key: item.Key}})
		}
	}
	if s := v.Secret; s != nil {
		add("Secret", s.SecretName, s.Items)
	}
	if c := v.ConfigMap; c != nil {
		add("ConfigMap", c.Name, c.Items)
	}
	if v.Projected == nil {
		return
	}
	for _, source := range v.Projected.Sources {
		if s := source.Secret; s != nil {
			add("Secret", s.Name, s.Items)
		}
		if c := source.ConfigMap; c != nil {
			add("ConfigMap", c.Name, c.Items)
		}
	}
}
