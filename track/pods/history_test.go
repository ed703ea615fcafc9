package pods

import (
	"testing"
	"time"

	"deployer/track/class"
)

// TestThirdCrashOfWhatDidNotChangeIsFinal: what had crashed so often before somebody looked gets half a minute for its next
// starts; else a third crash that is seen is final as that of any other pod, and not the restart after it.
func TestThirdCrashOfWhatDidNotChangeIsFinal(t *testing.T) {
	crashed := func(restarts int) Pod {
		return Pod{Containers: []Container{{Name: "app", Restarts: restarts, State: State{Waiting: StateReason{Reason: "CrashLoopBackOff"}}}}}
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
		policy := Policy{Unchanged: true}
		h := NewHistory(crashed(c.first), policy)
		h.Update(crashed(c.first))
		h.Symptoms(policy, start)
		h.Update(crashed(c.now))
		found := h.Symptoms(policy, start.Add(3*time.Second))
		if len(found) != 1 || found[0].Class != class.CrashLoop || !found[0].FinalAt.Equal(start.Add(c.final)) {
			t.Errorf("%s: %+v, want it final after %s", name, found, c.final)
		}
	}
}
