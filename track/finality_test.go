package track

import (
	"testing"
	"time"

	"deployer/track/class"
	"deployer/track/pods"
)

// TestThirdCrashOfWhatDidNotChangeIsFinal: what had crashed so often before somebody looked gets half a minute for its next
// starts; else a third crash that is seen is final as that of any other pod, and not the restart after it.
func TestThirdCrashOfWhatDidNotChangeIsFinal(t *testing.T) {
	crashed := func(restarts int) pods.Pod {
		return pods.Pod{Containers: []pods.Container{{Name: "app", Restarts: restarts, State: pods.State{Waiting: pods.StateReason{Reason: "CrashLoopBackOff"}}}}}
	}
	start := time.Now()
	for name, c := range map[string]struct {
		first, now int
		final      time.Duration
	}{
		"seen":            {1, 2, 10 * time.Second},
		"before":          {2, 2, 30 * time.Second},
		"before and seen": {2, 3, 30 * time.Second},
	} {
		policy := pods.Policy{Unchanged: true}
		h := pods.NewHistory(crashed(c.first), policy)
		h.Update(crashed(c.first))
		h.Symptoms(policy, start)
		h.Update(crashed(c.now))
		found := h.Symptoms(policy, start.Add(3*time.Second))
		if len(found) != 1 || found[0].Class != class.CrashLoop || !finalInPod(&found[0]).Equal(start.Add(c.final)) {
			t.Errorf("%s: %+v, want it final after %s", name, found, c.final)
		}
	}
}
