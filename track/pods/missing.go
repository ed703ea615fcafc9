package pods

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"deployer/internal/lazyregexp"
	"deployer/track/finding"
)

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
	missingDevice = lazyregexp.New(`(?i)(?:could not find )?(resourceclaim(?:template)?|device ?class)(?:e?s)?(?:\.resource\.k8s\.io)? "?(?:[^"\s]+/)?([^"/\s]+)"?(?: not found| does not exist|$)`)
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
		return finding.Missing{Kind: deviceKinds[strings.ReplaceAll(strings.ToLower(m[1]), " ", "")], Name: m[2]}, true
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
