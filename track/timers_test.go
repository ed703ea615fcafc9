package track

import (
	"context"
	"errors"
	"testing"
	"time"

	"deployer/internal/kube"
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

// A wait whose time is up during an outage of one watch ends with a timeout: nobody knows whether the
// object has made progress since.
func TestOutageAtTheDeadlineIsNoTimeWithoutProgress(t *testing.T) {
	begin := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	now := begin
	object := normalised(t, map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "status": map[string]any{"observedGeneration": float64(1)}})
	tracker := New(nil, Options{Now: func() time.Time { return now }, Logs: LogsNone})
	w := newWait(tracker, []Target{{ID: kube.IDOf(object), Baseline: object, Changed: true}}, nil)
	w.updateStatus(w.objects[0], now)
	w.objects[0].pauseTimers(begin.Add(9 * time.Minute))
	now = begin.Add(11 * time.Minute)
	w.health.recordAnswer() // on another watch
	ctx, stop := context.WithDeadline(t.Context(), begin)
	defer stop()
	err := w.outOfTime(ctx)
	var timeout *TimeoutError
	if !errors.As(err, &timeout) {
		t.Fatalf("after an outage of the last 2 of 11 minutes the wait ended with %v, want a timeout", err)
	}
	if got := timeout.NotReady[0].Waited; got != 9*time.Minute {
		t.Errorf("the object was waited for %s, want 9m without the outage", got)
	}
}
