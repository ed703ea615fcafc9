package track

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"deployer/internal/kube"
	"deployer/track/class"
	"deployer/track/pods"
)

// execErrorLimit is enough for a line that says why a command was not executed.
const execErrorLimit = 1 << 10

// readExecError finds out from the log, once for each container that crashes and whose status
// says no reason, why its command was not executed. runc starts the container before the
// kernel executes the command; when the kernel refuses, as for a program of another
// platform, only the log says so.
func (s *session) readExecError(obj *trackedObject) {
	p := obj.status.Finding
	if p == nil || p.Class != class.CrashLoop || obj.gk == kube.JobKind || obj.lookups.execErrorsRead[p.Container] {
		return
	}
	for _, h := range obj.newPods.byUID {
		c := h.UnexplainedCrash(p.Container)
		if c == nil {
			continue
		}
		obj.lookups.execErrorsRead[p.Container] = true
		pod, container := h.Pod, *c
		s.tasks.group.Go(func() {
			text := s.execErrorOf(pod, container)
			s.tasks.send(func() { h.SetExecError(container.Name, text); obj.schedule.isDue = true })
		})
		return
	}
}

// execErrorOf returns the log of a container's last crashed run if it is a single line;
// empty when it is longer, or can't be read.
func (s *session) execErrorOf(pod pods.Pod, c pods.Container) string {
	ctx, stop := context.WithTimeout(s.tasks.ctx, lookupTimeout)
	defer stop()
	text, err := s.typed.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: c.PlainName, Previous: c.Running, LimitBytes: new(int64(execErrorLimit)),
	}).DoRaw(ctx)
	line := strings.TrimSpace(string(text))
	if err != nil || strings.Contains(line, "\n") {
		return ""
	}
	return line
}
