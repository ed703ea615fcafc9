package run

import (
	"fmt"
	"testing"
	"time"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/internal/deploy"
	"deployer/internal/kube"
	"deployer/internal/view/output"
	"deployer/internal/view/viewtest"
	"deployer/track"
)

func newStage(t testing.TB, width, height int) (*studio, *screen) {
	s, scr := newStudio(Options{}, true), newScreen(t, width, height)
	streams := output.Streams{Out: &s.out, Err: scr, ErrTTY: true, Width: width, Height: height}.Filtered("deployer")
	s.View = newView(streams, Options{Timeout: 5 * time.Minute, Getenv: viewtest.NoEnv, ExitCode: exitCode}, func() time.Time { return s.clock }, directOutputs(streams))
	return s, scr
}

func TestTerminal(t *testing.T) {
	s, scr := newStage(t, 110, 24)
	s.play(t)
	p := pull()
	s.saw(track.ProblemSeen, track.Status{ID: viewtest.WebID(), State: track.Progressing, Total: 3, Finding: &p, Rollout: &track.Rollout{Desired: 3, OldServing: 3}})
	s.after(9 * time.Second)
	viewtest.Golden(t, "terminal-during.txt.golden", []byte(scr.String()))
	err := failedError()
	s.saw(track.StatusChanged, track.Status{ID: viewtest.WebID(), State: track.Failed, Total: 3, Finding: &p})
	s.HandleEvent(told(deploy.Ended, deploy.Event{Operation: s.current.op, Record: s.current.op.Next, Err: err, Took: 12 * time.Second}))
	if err := s.end(); err != nil {
		t.Fatal(err)
	}
	viewtest.Golden(t, "terminal-after.txt.golden", []byte(scr.String()))
	if scr.region() != 0 {
		t.Errorf("the region is still there:\n%s", scr)
	}
}

// TestTerminalSizes holds that the region stays within half of the screen and
// never wraps, whatever the size, and that nothing is left of it.
func TestTerminalSizes(t *testing.T) {
	for _, size := range [][2]int{{20, 4}, {40, 6}, {80, 24}, {200, 60}} {
		s, scr := newStage(t, size[0], size[1])
		op := &deploy.Operation{Verb: deploy.Upgrade, Release: "web-with-a-rather-long-name", Namespace: "production", Next: viewtest.Record(7, "deployed"), Plan: &apply.Plan{Waves: []apply.Wave{{Changes: []apply.Change{}}}}}
		var ids []kube.ID
		for i := range 50 {
			ids = append(ids, viewtest.ID("apps", "Deployment", fmt.Sprintf("worker-%02d-with-a-long-name-日本語", i)))
			op.Plan.Waves[0].Changes = append(op.Plan.Waves[0].Changes, apply.Change{ID: ids[i], Action: decide.Update})
		}
		s.HandleEvent(told(deploy.Began, deploy.Event{Operation: op}))
		s.HandleEvent(told(deploy.StepBegan, deploy.Event{Step: "wait", Objects: 50}))
		p := pull()
		for i, name := range ids {
			status := track.Status{ID: name, State: track.Progressing, Message: "0 of 3 pods ready", Total: 3}
			if i%7 == 0 {
				status.Finding = &p
			}
			s.saw(track.StatusChanged, status)
			s.after(tickEvery)
			if n := scr.region(); n > max(2, min(size[1]/2, maxRegion)) {
				t.Fatalf("%v: the region has %d lines:\n%s", size, n, scr)
			}
		}
		for _, name := range ids {
			s.saw(track.StatusChanged, track.Status{ID: name, State: track.Ready, Done: 3, Total: 3})
			s.after(tickEvery)
		}
		s.HandleEvent(told(deploy.Ended, deploy.Event{Operation: op, Took: time.Minute}))
		if err := s.end(); err != nil {
			t.Fatal(err)
		}
		if scr.region() != 0 {
			t.Errorf("%v: the region is still there:\n%s", size, scr)
		}
	}
}

// TestTerminalLive runs the real painter and many goroutines, for the race detector.
func TestTerminalLive(t *testing.T) {
	scr := newScreen(t, 80, 24)
	e := New(output.Streams{Err: scr, Out: scr, ErrTTY: true, Width: 80, Height: 24}.Filtered("deployer"), Options{Getenv: viewtest.NoEnv, ExitCode: exitCode})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 100 {
			e.Warn(fmt.Sprintf("warning %d", i))
		}
	}()
	e.HandleEvent(told(deploy.Began, deploy.Event{Operation: viewtest.Upgrade(t)}))
	<-done
	e.HandleEvent(told(deploy.Ended, deploy.Event{}))
	for range 2 {
		if err := e.end(); err != nil {
			t.Fatal(err)
		}
	}
	e.Warn("after the end")
}
