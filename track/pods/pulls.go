package pods

import (
	"cmp"
	"strings"

	"deployer/internal/lazyregexp"
	"deployer/track/class"
	"deployer/track/rules"
)

// pulls is what is known of the attempts to get a container's image. The container's state
// is behind: it shows an attempt when the kubelet begins the next one. Events tell of one at
// once, where they may be read and the kubelet hasn't written too many.
// k8s.io/kubernetes/pkg/kubelet/kubelet.go, SyncPod: the status is written before the pull
type pulls struct {
	attempts int    // that failed for the same class of reason
	message  string // why the last one failed; empty when that isn't known
}

// An imageClass is an image and why it can't be had.
type imageClass struct {
	image string
	class.Class
}

var (
	failedPull = lazyregexp.New(`^Failed to pull image "([^"]+)": (.+)`)
	// bareBackOff is what kubelets before 1.32 say while they wait: not why.
	bareBackOff = lazyregexp.New(`^(?:Back-off pulling image "[^"]*")?$`)
)

// missingPullSecrets are the names in an event of the kubelet about pull secrets that it can't find.
// k8s.io/kubernetes/pkg/kubelet/kubelet_pods.go, getPullSecretsForPod
func missingPullSecrets(message string) []string {
	_, names, _ := strings.Cut(message, "(")
	names, _, _ = strings.Cut(names, ")")
	return strings.FieldsFunc(names, func(r rune) bool { return r == ',' || r == ' ' })
}

// recordPull follows the attempts that a container's states tell of.
func (h *History) recordPull(c *Container) {
	reason, message := c.Waiting.Reason, c.Waiting.Message
	if !pullReasons.Has(reason) {
		return
	}
	p := &h.of(c.Name).pulls
	if bareBackOff().MatchString(message) {
		message = p.message
	}
	before := h.Pod.container(c.Name)
	switch {
	case p.attempts == 0, p.message != "" && pullClass(reason, message, c.pulled()) != pullClass(reason, p.message, c.pulled()):
		p.attempts = 1
	case reason == "ErrImagePull" && before != nil && before.Waiting.Reason != "ErrImagePull":
		p.attempts++
	}
	p.message = message
}

// recordPullEvent takes an event about an attempt; count is how often the kubelet has written it.
func (h *History) recordPullEvent(message string, count int) {
	m := failedPull().FindStringSubmatch(message)
	if m == nil {
		return
	}
	reason := rules.OneLine(withoutPrefixes(m[2]))
	key := imageClass{m[1], pullClass("", reason, m[1])}
	h.pullEvents[key] = pulls{attempts: max(count, h.pullEvents[key].attempts), message: reason}
}

// pullProblem is that of a container whose image can't be had.
func (h *History) pullProblem(c *Container) *Symptom {
	p := h.of(c.Name).pulls
	if p.message == "" {
		p.message = cmp.Or(h.pullEvent(c, class.ImagePullTransient).message, h.pullEvent(c, class.ImagePullPermanent).message, c.Waiting.Message)
	}
	f := ofContainer(c, pullClass(c.Waiting.Reason, p.message, c.pulled()), p.message)
	f.Attempts = max(p.attempts, h.pullEvent(c, f.Class).attempts)
	f.Certain = f.Class == class.ImagePullPermanent && registryLacks(p.message, c.pulled())
	if c.volumeImage != "" {
		f.Message = "image of volume " + h.Pod.Volumes.images[c.volumeImage] + ": " + f.Message
	}
	return &f
}

// pullEvent is what events tell of a container's image. Kubelets since 1.32 write the tag
// that they take for an image without one.
func (h *History) pullEvent(c *Container, reason class.Class) pulls {
	return cmp.Or(h.pullEvents[imageClass{c.pulled(), reason}], h.pullEvents[imageClass{c.pulled() + ":latest", reason}])
}

// pulled is the image that a container waits for: its own, or that of a volume.
func (c *Container) pulled() string { return cmp.Or(c.volumeImage, c.Image) }

// imageOf finds which of a pod's image volumes a message of the kubelet or a runtime is about; empty when it names
// none of them.
func imageOf(message string, volumes map[string]string) string {
	found := ""
	for image := range volumes {
		if strings.Contains(message, image) && len(image) > len(found) {
			found = image
		}
	}
	return found
}
