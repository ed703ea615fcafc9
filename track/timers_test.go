package track

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"deployer/internal/kube"
)

// What was seen before an outage doesn't count as having lasted until its end: a container that
// crashes at its start would look stable.
func TestOutageIsNoTimeOfBeingReady(t *testing.T) {
	ready := time.Now()
	var c clock
	c.pause(ready.Add(time.Second)) // of one watch
	c.pause(ready.Add(time.Minute)) // of another
	if during := c.at(ready.Add(30 * time.Minute)); during.Sub(ready) != time.Second {
		t.Errorf("ready for %s in an outage, want a second", during.Sub(ready))
	}
	c.resume(ready.Add(40 * time.Minute))
	c.resume(ready.Add(time.Hour))
	c.pause(ready.Add(59 * time.Minute)) // noticed late
	c.resume(ready.Add(61 * time.Minute))
	if !c.at(time.Time{}).IsZero() || !c.shown(time.Time{}).IsZero() {
		t.Error("no time becomes one by an outage")
	}
	for at, want := range map[time.Duration]time.Duration{0: 0, time.Hour: time.Second, 61 * time.Minute: time.Second, 62 * time.Minute: time.Minute + time.Second} {
		got := c.at(ready.Add(at))
		if got.Sub(ready) != want {
			t.Errorf("ready for %s after %s with an outage, want %s", got.Sub(ready), at, want)
		}
		if back := c.shown(got.Add(time.Minute)); back.Sub(ready) != max(at, 61*time.Minute)+time.Minute && at != 0 {
			t.Errorf("a minute after %s is shown as %s", at, back.Sub(ready))
		}
	}
}

// The kubelet has its twenty seconds to see a Secret that was written also when an outage follows.
func TestOutageIsNoTimeToNoticeASecret(t *testing.T) {
	begin := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	job := normalised(t, map[string]any{"apiVersion": "batch/v1", "kind": "Job"})
	obj := newTrackedObject(Target{ID: kube.IDOf(job), Baseline: job, Changed: true}, &Options{}, begin)
	obj.release.missing = func(missingID) missingReference { return missingReference{foundAt: begin.Add(10 * time.Second)} }
	pod := (&actor{Name: "web-1", Phase: "Pending", Waiting: []string{"CreateContainerConfigError", `secret "db" not found`}}).pod(begin)
	obj.updatePod(pod)
	obj.evaluate(begin)
	obj.pauseTimers(begin.Add(15 * time.Second))
	obj.resumeTimers(begin.Add(5 * time.Minute))
	for after, want := range map[time.Duration]State{5*time.Minute + 14*time.Second: Progressing, 5*time.Minute + 15*time.Second: Failed} {
		status, _ := obj.evaluate(obj.clock.at(begin.Add(after)))
		if status.State != want {
			t.Errorf("after %s it was %s, want %s: %s", after, status.State, want, status.Message)
		}
		if shown := status.Finding.FinalAt.Sub(begin); shown != 5*time.Minute+15*time.Second {
			t.Errorf("its failure is shown for %s", shown)
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

// A custom resource may be without progress while workloads of its release roll out: one of them may be its controller.
// A Job isn't one.
func TestNoProgressBeforeTheWorkloadsAreReady(t *testing.T) {
	begin := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		workload string
		ready    time.Duration // when the workload was ready
		want     State
		wantAt   time.Duration
	}{
		"StatefulSet that rolls": {workload: "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 9}}", ready: time.Hour, want: Progressing, wantAt: 59 * time.Minute},
		"and then is ready":      {workload: "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 9}}", ready: 12 * time.Minute, want: Failed, wantAt: 22 * time.Minute},
		"Job that runs":          {workload: "{apiVersion: batch/v1, kind: Job, metadata: {name: load}}", ready: time.Hour, want: Failed, wantAt: 10 * time.Minute},
	} {
		var job, thing unstructured.Unstructured
		for text, obj := range map[string]*unstructured.Unstructured{test.workload: &job,
			"{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}, status: {conditions: [{type: Ready, status: 'False', reason: Waits}]}}": &thing} {
			if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
				t.Fatal(err)
			}
		}
		w := newWait(New(nil, Options{Now: func() time.Time { return begin }}), []Target{
			{ID: kube.IDOf(&thing), Baseline: &thing, Changed: true}, {ID: kube.IDOf(&job), Baseline: &job, Changed: true}}, nil)
		w.updateAll(begin)
		for at := time.Duration(0); at <= test.wantAt; at += time.Second {
			now := begin.Add(at)
			w.health.answeredAt = now.Add(time.Hour)
			w.objects[1].timers.progressedAt = now // one pod after the other
			if at == test.ready {
				w.objects[1].status.State = Ready
			}
			w.updateWorkloads(now)
			w.updateDue(now)
		}
		status := w.objects[0].status
		if status.State != test.want || status.State == Failed && status.Waited != test.wantAt {
			t.Errorf("%s: it was %s after %s, want %s after %s: %s", name, status.State, status.Waited, test.want, test.wantAt, status.Message)
		}
	}
}

// What the first look at the workloads says counts from then on, however long the watches take to be opened.
func TestOldStatusIsNoNewsBeforeTheWatches(t *testing.T) {
	begin := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	thing := normalised(t, map[string]any{"apiVersion": "example.com/v1", "kind": "Thing",
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}})
	operator := normalised(t, map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"})
	w := newWait(New(nil, Options{Now: func() time.Time { return begin }}), []Target{
		{ID: kube.IDOf(thing), Baseline: thing, Changed: true}, {ID: kube.IDOf(operator), Baseline: operator, Changed: true}}, nil)
	w.updateAll(begin)
	w.updateStatus(w.objects[0], begin.Add(6*time.Second))
	if got := w.objects[0].status; got.State != Progressing {
		t.Errorf("it was %s (%s), want it to wait for the Deployment", got.State, got.Message)
	}
}
