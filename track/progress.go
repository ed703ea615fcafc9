package track

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"deployer/track/pods"
	"deployer/track/rules"
)

// updateProgress records progress when a count is higher than ever.
func (t *trackedObject) updateProgress(now time.Time) {
	counts := map[string]int{}
	if t.observed.object != nil {
		t.addStatusCounts(counts)
	}
	for uid, history := range t.newPods.byUID {
		if history.Pod.Phase == corev1.PodFailed {
			continue // one that takes its place is no progress
		}
		counts["pods"]++
		podCounts(counts, string(uid), history)
	}
	for key, n := range counts {
		if n > t.timers.highestCounts[key] {
			t.timers.highestCounts[key], t.timers.progressedAt = n, now
		}
	}
}

// progressCounts are numbers of workloads' statuses that grow on the way.
var progressCounts = []string{"updatedReplicas", "readyReplicas", "availableReplicas", "succeeded",
	"updatedNumberScheduled", "numberReady", "numberAvailable", "fullyLabeledReplicas", "observedGeneration"}

func (t *trackedObject) addStatusCounts(counts map[string]int) {
	status, _ := t.observed.object.Object["status"].(map[string]any)
	for _, key := range progressCounts {
		if n, ok := status[key].(int64); ok {
			counts[key] = int(n)
		}
	}
	if t.isWorkload() {
		return
	}
	// Other kinds: a condition in a state not seen before is progress, one that
	// goes to and fro is not.
	for _, c := range rules.Conditions(t.observed.object) {
		counts[fmt.Sprint("condition ", c["type"], c["status"], c["reason"])] = 1
	}
	counts["word "+rules.Word(status)] = 1
	for _, key := range []string{"phase", "state", "progress"} {
		counts[fmt.Sprint(key, " ", status[key])] = 1
	}
}

func podCounts(counts map[string]int, uid string, history *pods.History) {
	if history.Pod.Scheduling.Done {
		counts["scheduled"]++
	}
	for i := range history.Pod.Containers {
		c := &history.Pod.Containers[i]
		if c.ImageID != "" {
			counts["image "+uid+c.Name] = 1
		}
		if c.Running {
			counts["started "+uid+c.Name] = 1
		}
		if c.Init && c.Terminated != nil && c.Terminated.ExitCode == 0 {
			counts["done "+uid+c.Name] = 1
		}
	}
}
