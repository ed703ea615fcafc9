package track

import (
	"testing"
	"time"
)

// What was seen before an outage doesn't count as having lasted until its end: a container that
// crashes at its start would look stable.
func TestOutageIsNoTimeOfBeingReady(t *testing.T) {
	ready := time.Now()
	obj := &trackedObject{}
	obj.timers.readySince, obj.timers.runningAgainSince = ready, ready
	obj.pauseTimers(ready.Add(time.Second))
	obj.resumeTimers(ready.Add(time.Hour))
	for name, since := range map[string]time.Time{"ready": obj.timers.readySince, "running again": obj.timers.runningAgainSince} {
		if lasted := ready.Add(time.Hour).Sub(since); lasted != time.Second {
			t.Errorf("%s for %s after an outage, want a second", name, lasted)
		}
	}
}
