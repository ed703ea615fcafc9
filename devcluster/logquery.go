package main

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// logQuery is a request for the log of one container.
type logQuery struct {
	corev1.PodLogOptions
}

// parseLogQuery reads the options as the API server passes them on.
func parseLogQuery(container string, values url.Values) (logQuery, error) {
	var q logQuery
	if err := legacyscheme.ParameterCodec.DecodeParameters(values, corev1.SchemeGroupVersion, &q.PodLogOptions); err != nil {
		return q, err
	}
	q.Container = container
	if q.SinceSeconds != nil {
		q.SinceTime = &metav1.Time{Time: time.Now().Add(-time.Duration(*q.SinceSeconds) * time.Second)}
	}
	return q, nil
}

// text is all that the container has written.
func (q logQuery) text(pod *corev1.Pod) string {
	keys := []string{logsKey + "." + q.Container, logsKey}
	if q.Previous {
		keys = append([]string{logsPreviousKey + "." + q.Container, logsPreviousKey}, keys...)
	}
	for _, key := range keys {
		if text, ok := pod.Annotations[key]; ok {
			if text != "" && !strings.HasSuffix(text, "\n") {
				text += "\n"
			}
			return text
		}
	}
	return ""
}

// cut gives the part of the text that was asked for. A simulated container
// writes one line per millisecond from its start.
func (q logQuery) cut(pod *corev1.Pod, text string) string {
	lines := strings.SplitAfter(text, "\n")
	lines = lines[:len(lines)-1] // what follows the last newline: nothing
	began := q.began(pod)
	var kept []string
	for i, line := range lines {
		written := began.Add(time.Duration(i) * time.Millisecond)
		if q.SinceTime != nil && written.Before(q.SinceTime.Time) {
			continue
		}
		if q.Timestamps {
			line = written.UTC().Format(time.RFC3339Nano) + " " + line
		}
		kept = append(kept, line)
	}
	if n := q.TailLines; n != nil {
		kept = kept[max(0, len(kept)-int(*n)):]
	}
	all := strings.Join(kept, "")
	if n := q.LimitBytes; n != nil {
		all = all[:min(int(*n), len(all))]
	}
	return all
}

// began is when the container has started, as far as its status tells.
func (q logQuery) began(pod *corev1.Pod) time.Time {
	status := q.status(pod)
	switch {
	case status == nil:
	case q.Previous && status.LastTerminationState.Terminated != nil:
		return status.LastTerminationState.Terminated.StartedAt.Time
	case status.State.Running != nil:
		return status.State.Running.StartedAt.Time
	case status.State.Terminated != nil:
		return status.State.Terminated.StartedAt.Time
	}
	return pod.CreationTimestamp.Time
}

// problem says why there is no log, in the words of the kubelet, "" for none.
func (q logQuery) problem(pod *corev1.Pod) string {
	status := q.status(pod)
	where := fmt.Sprintf("container %q in pod %q", q.Container, pod.Name)
	if status == nil {
		return where + " is not available"
	}
	state, last := status.State, status.LastTerminationState.Terminated
	switch {
	case q.Previous && last == nil:
		return "previous terminated " + where + " not found"
	case state.Running != nil, state.Terminated != nil, last != nil:
		return ""
	case state.Waiting == nil:
		return where + " is waiting to start - no logs yet"
	case state.Waiting.Reason == "ErrImagePull":
		return where + " is waiting to start: image can't be pulled"
	case state.Waiting.Reason == "ImagePullBackOff":
		return where + " is waiting to start: trying and failing to pull image"
	}
	return where + " is waiting to start: " + state.Waiting.Reason
}

// over reports whether the container won't write any more.
func (q logQuery) over(pod *corev1.Pod) bool {
	status := q.status(pod)
	return q.Previous || status == nil || status.State.Running == nil
}

func (q logQuery) status(pod *corev1.Pod) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{
		pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses, pod.Status.EphemeralContainerStatuses,
	} {
		for i := range list {
			if list[i].Name == q.Container {
				return &list[i]
			}
		}
	}
	return nil
}
