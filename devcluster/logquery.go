package main

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// logQuery is a request for the log of one container, with the options of
// PodLogOptions that a simulated log can honour.
type logQuery struct {
	container  string
	follow     bool
	previous   bool
	timestamps bool
	since      time.Time // zero: from the beginning
	tail       int       // negative: all
	limit      int       // negative: all
}

// parseLogQuery reads the options as the API server passes them on.
func parseLogQuery(container string, values url.Values) (logQuery, error) {
	q := logQuery{
		container:  container,
		follow:     values.Get("follow") == "true",
		previous:   values.Get("previous") == "true",
		timestamps: values.Get("timestamps") == "true",
		tail:       -1,
		limit:      -1,
	}
	for _, number := range []struct {
		name string
		to   func(int)
	}{
		{"tailLines", func(n int) { q.tail = n }},
		{"limitBytes", func(n int) { q.limit = n }},
		{"sinceSeconds", func(n int) { q.since = time.Now().Add(-time.Duration(n) * time.Second) }},
	} {
		value := values.Get(number.name)
		if value == "" {
			continue
		}
		n, err := strconv.Atoi(value)
		if err != nil {
			return q, fmt.Errorf("%s=%q is not a number", number.name, value)
		}
		number.to(n)
	}
	if value := values.Get("sinceTime"); value != "" {
		since, err := time.Parse(time.RFC3339, value)
		if err != nil {
			return q, fmt.Errorf("sinceTime=%q is not a time: %w", value, err)
		}
		q.since = since
	}
	return q, nil
}

// text is all that the container has written.
func (q logQuery) text(pod *corev1.Pod) string {
	keys := []string{logsKey + "." + q.container, logsKey}
	if q.previous {
		keys = append([]string{logsPreviousKey + "." + q.container, logsPreviousKey}, keys...)
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
		if written.Before(q.since) {
			continue
		}
		if q.timestamps {
			line = written.UTC().Format(time.RFC3339Nano) + " " + line
		}
		kept = append(kept, line)
	}
	if q.tail >= 0 && len(kept) > q.tail {
		kept = kept[len(kept)-q.tail:]
	}
	all := strings.Join(kept, "")
	if q.limit >= 0 && len(all) > q.limit {
		all = all[:q.limit]
	}
	return all
}

// began is when the container has started, as far as its status tells.
func (q logQuery) began(pod *corev1.Pod) time.Time {
	status := q.status(pod)
	switch {
	case status == nil:
	case q.previous && status.LastTerminationState.Terminated != nil:
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
	where := fmt.Sprintf("container %q in pod %q", q.container, pod.Name)
	if status == nil {
		return where + " is not available"
	}
	state, last := status.State, status.LastTerminationState.Terminated
	switch {
	case q.previous && last == nil:
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
	return q.previous || status == nil || status.State.Running == nil
}

func (q logQuery) status(pod *corev1.Pod) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{
		pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses, pod.Status.EphemeralContainerStatuses,
	} {
		for i := range list {
			if list[i].Name == q.container {
				return &list[i]
			}
		}
	}
	return nil
}
