package track

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"deployer/track/class"
	"deployer/track/pods"
)

// firstWordsLimit is enough for a line that says why a command was not executed.
const firstWordsLimit = 1 << 10

// readFirstWords reads, once for each container of a workload that crashes without a word in
// its status, whether its command was executed at all. runc lets the container begin and only
// then has the kernel execute the command; that the kernel refuses, as with another
// platform's program, is told in the log.
func (s *session) readFirstWords(obj *trackedObject) {
	p := obj.status.Problem
	if p == nil || p.Class != class.CrashLoop || obj.gk.Kind == "Job" || obj.lookups.firstWords[p.Container] {
		return
	}
	for uid, h := range obj.newPods.byUID {
		c := h.SilentCrash(p.Container)
		if c == nil {
			continue
		}
		if obj.lookups.firstWords == nil {
			obj.lookups.firstWords = map[string]bool{}
		}
		obj.lookups.firstWords[p.Container] = true
		pod, container := h.Pod, *c
		s.tasks.group.Go(func() {
			text := s.firstWordsOf(pod, container)
			s.tasks.send(func() { obj.setFirstWords(uid, container.Name, text); s.dirty[obj] = true })
		})
		return
	}
}

// firstWordsOf is the log of a container's last run that has crashed when it is one line;
// empty when it is longer, or can't be read.
func (s *session) firstWordsOf(pod pods.Pod, c pods.Container) string {
	typed, err := s.tracker.cluster.Typed()
	if err != nil {
		return "" // Wait has used the connection already
	}
	ctx, stop := context.WithTimeout(s.tasks.ctx, lookupTimeout)
	defer stop()
	limit := int64(firstWordsLimit)
	text, err := typed.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: c.PlainName, Previous: c.Running, LimitBytes: &limit,
	}).DoRaw(ctx)
	line := strings.TrimSpace(string(text))
	if err != nil || strings.Contains(line, "\n") {
		return ""
	}
	return line
}

func (t *trackedObject) setFirstWords(pod types.UID, container, text string) {
	if h := t.newPods.byUID[pod]; h != nil {
		h.SetFirstWords(container, text)
	}
}
