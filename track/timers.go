package track

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"deployer/track/class"
	"deployer/track/pods"
	"deployer/track/rules"
)

// A clock is an object's own: it stands still during outages of what shows the object, because silence proves nothing then. All
// times that are kept of the object are its; people and programs are shown those of the wait.
type clock struct {
	outages []timeSpan // in order; the last may go on
	active  int        // outages at this time, of the object's watches
}

type timeSpan struct{ from, to time.Time } // to is zero while it goes on

// isPaused reports whether there is an outage.
func (c *clock) isPaused() bool { return c.active > 0 }

// pause begins an outage, at a time of the wait that may have passed.
func (c *clock) pause(at time.Time) {
	if c.active++; c.active > 1 {
		return
	}
	if n := len(c.outages); n > 0 && at.Before(c.outages[n-1].to) {
		at = c.outages[n-1].to
	}
	c.outages = append(c.outages, timeSpan{from: at})
}

// resume ends an outage. With the last one the clock goes on where it stood.
func (c *clock) resume(at time.Time) {
	if c.active--; c.active == 0 {
		c.outages[len(c.outages)-1].to = at
	}
}

// at converts a time of the wait to the object's; zero stays zero.
func (c *clock) at(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	var lost time.Duration
	for _, o := range c.outages {
		lost += max(0, earliest(o.to, t).Sub(o.from))
	}
	return t.Add(-lost)
}

// shown converts a time of the object to the wait's. What comes after an outage that goes on is shown as if that took no time.
func (c *clock) shown(t time.Time) time.Time {
	for _, o := range c.outages {
		if t.After(o.from) && !o.to.IsZero() {
			t = t.Add(o.to.Sub(o.from))
		}
	}
	return t
}

// timers are the times from which the limits of an object itself count; those of its pods have theirs.
type timers struct {
	appliedAt     time.Time
	progressedAt  time.Time                 // when a count was last higher than ever
	highestCounts map[string]int            // so far; a higher one is progress
	failingSince  map[class.Class]time.Time // since when the object itself has a problem; the empty class is since when it is ready

	rolloutSeen       bool      // the object was observed while it wasn't ready
	readySince        time.Time // since when its rule calls it ready; zero when it doesn't
	runningAgainSince time.Time // since when containers that have crashed run again; zero when they don't
}

// since returns since when the object itself has a problem; it begins now unless it has
// begun.
func (t *timers) since(c class.Class, now time.Time) time.Time {
	if at, known := t.failingSince[c]; known {
		return at
	}
	t.failingSince[c] = now
	return now
}

// A schedule says when, by its clock, an object's status has to be computed again.
type schedule struct {
	isDue      bool      // something has changed since
	recheckAt  time.Time // when time alone may change it; zero for never
	computedAt time.Time // when it was computed last
}

// isDueAt reports whether the status has to be computed at a time.
func (s schedule) isDueAt(now time.Time) bool {
	return s.isDue || !s.recheckAt.IsZero() && !now.Before(s.recheckAt)
}

// earliest returns the first of the times that aren't zero; zero when all are.
func earliest(times ...time.Time) time.Time {
	var first time.Time
	for _, at := range times {
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

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
