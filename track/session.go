package track

import (
	"k8s.io/client-go/kubernetes"

	"deployer/internal/kube"
)

// A session is what the parts of a wait share: the cluster and its health, the tracked objects, the
// reports and the goroutines. Only the goroutine of the wait may touch its fields; other goroutines send
// their results through tasks.
type session struct {
	cluster  *kube.Cluster
	typed    kubernetes.Interface // of the cluster; set when the wait begins
	opts     *Options
	objects  []*trackedObject
	onReport func(Report)
	warned   map[string]bool // texts, each reported once
	tasks    tasks
	health   apiHealth
	fatal    error // ends the wait: credentials refused, or a watch that can't be opened
	// allNamespaces says that pods and events of all namespaces are watched at once, because the
	// targets are in many.
	allNamespaces bool
}

// warn reports a warning, once.
func (s *session) warn(text string) {
	if !s.warned[text] {
		s.warned[text] = true
		s.onReport(Report{Kind: Warned, Time: s.opts.Now(), Text: text})
	}
}

// object finds a target by its identity; nil when it isn't one.
func (s *session) object(id kube.ID) *trackedObject {
	for _, obj := range s.objects {
		if obj.ID == id {
			return obj
		}
	}
	return nil
}
