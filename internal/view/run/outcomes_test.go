package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/internal/deploy"
	"deployer/internal/view/output"
	"deployer/internal/view/page"
	"deployer/internal/view/viewtest"
	"deployer/track"
	"deployer/track/class"
	"deployer/track/finding"
)

// hookFails is a run that ends with its first hook.
func (s *studio) hookFails(t testing.TB) {
	op := viewtest.Upgrade(t)
	migrate := viewtest.ID("batch", "Job", "migrate")
	err := &deploy.HookError{Event: "pre-upgrade", Hook: "web/templates/migrate.yaml", Err: hookFailure()}
	s.HandleEvent(told(deploy.Began, deploy.Event{Operation: op}))
	s.HandleEvent(told(deploy.StepBegan, deploy.Event{Step: "pre-upgrade hooks", Objects: 1}))
	s.HandleEvent(told(deploy.Applied, deploy.Event{Step: "hook", Change: &apply.Change{ID: migrate, Action: decide.Create}}))
	s.after(time.Second)
	for i, text := range []string{"applying 0042_orders.sql", `relation "orders" does not exist`} {
		s.HandleEvent(deploy.Event{Event: track.Event{Kind: track.LogWritten, Status: track.Status{ID: migrate}, Log: &track.LogLine{
			Pod: "migrate-x7k2p", Container: "app", Text: text, Dropped: 17 * i,
		}}})
	}
	s.after(time.Second)
	p := track.Finding{Class: class.JobFailed, Title: "Job failed", Message: "BackoffLimitExceeded"}
	s.saw(track.StatusChanged, track.Status{ID: migrate, State: track.Failed, Finding: &p})
	s.HandleEvent(told(deploy.HookRan, deploy.Event{Hook: op.Hooks.Before[0], Took: 2 * time.Second, Err: err}))
	s.HandleEvent(told(deploy.StepEnded, deploy.Event{Step: "pre-upgrade hooks", Objects: 1, Took: 2 * time.Second, Err: err}))
	op.Next.Info.Status = helmrelease.StatusFailed
	s.HandleEvent(told(deploy.Ended, deploy.Event{Operation: op, Record: op.Next, Took: s.clock.Sub(s.began), Err: err}))
}

// timesOut is a run in which one container isn't ready in time, the API server
// is away for a while, and nothing else is known of a custom resource.
func (s *studio) timesOut(t testing.TB) {
	op := s.play(t)
	p := track.Finding{
		Class:     class.ReadinessProbeFailed,
		Title:     "Readiness probe fails",
		Message:   "Readiness probe failed: HTTP probe failed with statuscode: 503",
		Container: "web",
		Pods:      []string{"web-6d8f-k2x9n"}, PodCount: 1, PodTotal: 3, Nodes: []string{"node-1"},
		Logs: []finding.Log{{Pod: "web-6d8f-k2x9n", Container: "web", Lines: []string{"waiting for the licence server"}}},
	}
	web := track.Status{ID: viewtest.WebID(), State: track.Progressing, Message: "2 of 3 pods ready", Done: 2, Total: 3, Finding: &p, Waited: 36 * time.Second}
	foo := track.Status{ID: viewtest.ID("example.com", "Foo", "foo"), State: track.Progressing, Message: "Issuing: DNS-01 challenge pending", Waited: 36 * time.Second}
	s.saw(track.ProblemSeen, web)
	s.after(2 * time.Second)
	s.HandleEvent(deploy.Event{Event: track.Event{Kind: track.APILost, Text: "watching deployments.apps in namespace prod: connection refused"}})
	s.after(4 * time.Second)
	s.HandleEvent(deploy.Event{Event: track.Event{Kind: track.APIRegained, Lost: 4 * time.Second}})
	s.after(31 * time.Second)
	late := foundAt(p, false, viewtest.WebID())
	late.Rollout = &track.Rollout{Desired: 3, Updated: 3, NewReady: 2, Available: 2}
	err := &track.TimeoutError{
		Causes:   []track.Finding{late},
		NotReady: []track.Status{web, foo}, Total: 7, Goal: track.Ready, Waited: 37 * time.Second, Err: context.DeadlineExceeded,
	}
	s.HandleEvent(told(deploy.StepEnded, deploy.Event{Step: "wait", Objects: 7, Took: 37 * time.Second, Err: err}))
	op.Next.Info.Status = helmrelease.StatusFailed
	s.HandleEvent(told(deploy.Ended, deploy.Event{Operation: op, Record: op.Next, Took: s.clock.Sub(s.began), Err: err}))
}

// TestOutcomes shows one success and three failures on a terminal, in the log
// of a CI system and as JSON.
func TestOutcomes(t *testing.T) {
	for name, play := range map[string]func(*studio){
		"success": func(s *studio) { s.succeed(t) },
		"failure": func(s *studio) { s.fail(t, failedError()) },
		"hook":    func(s *studio) { s.hookFails(t) },
		"timeout": func(s *studio) { s.timesOut(t) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStudio(Options{}, false)
			play(s)
			viewtest.Golden(t, "run-"+name+".txt.golden", s.closed(t))
			s = newStudio(Options{Format: output.FormatJSON}, false)
			play(s)
			viewtest.Golden(t, "run-"+name+".json.golden", s.closed(t))
			s, scr := newStage(t, 110, 24)
			play(s)
			if err := s.end(); err != nil {
				t.Fatal(err)
			}
			viewtest.Golden(t, "terminal-"+name+".txt.golden", []byte(scr.String()))
		})
	}
}

// TestUninstallSaysGone: nothing of it is called ready, or not ready.
func TestUninstallSaysGone(t *testing.T) {
	for want, err := range map[string]error{
		"gone      both objects are gone in 1s": nil,
		"1 object not gone": &track.TimeoutError{
			NotReady: []track.Status{{ID: viewtest.WebID(), State: track.Progressing, Message: "being deleted"}}, Total: 2, Goal: track.Gone, Err: context.DeadlineExceeded,
		},
	} {
		s := newStudio(Options{}, false)
		op := &deploy.Operation{Verb: deploy.Uninstall, Release: "web", Namespace: "prod", Plan: &apply.Plan{}}
		s.HandleEvent(told(deploy.Began, deploy.Event{Operation: op}))
		s.HandleEvent(told(deploy.StepBegan, deploy.Event{Step: deploy.StepWait, Objects: 2}))
		s.saw(track.StatusChanged, track.Status{ID: viewtest.WebID(), State: track.Progressing, Message: "being deleted"})
		s.HandleEvent(told(deploy.StepEnded, deploy.Event{Step: deploy.StepWait, Objects: 2, Took: time.Second, Err: err}))
		s.HandleEvent(told(deploy.Ended, deploy.Event{Operation: op, Took: time.Second, Err: err}))
		if got := string(s.closed(t)); !strings.Contains(got, want) || strings.Contains(got, "ready") {
			t.Errorf("it wrote %q, want %q in it", got, want)
		}
	}
}

func TestAttempts(t *testing.T) {
	for want, in := range map[string]struct {
		class    track.Class
		n, limit int
	}{
		"":               {class.ConfigError, 1, 0}, // of course
		"crash 1 of 3":   {class.CrashLoop, 1, 3},
		"4 crashes":      {class.OOMKilled, 4, 3},
		"kill 2 of 3":    {class.LivenessProbeFailed, 2, 3},
		"attempt 1 of 2": {class.ImagePullPermanent, 1, 2},
		"2 attempts":     {class.ImagePullTransient, 2, 0},
	} {
		if got := attempts(in.class, in.n, in.limit); got != want {
			t.Errorf("attempts(%s, %d, %d) = %q, want %q", in.class, in.n, in.limit, got, want)
		}
	}
}

// TestOldPodsAreNoProgress: what a rollout shows counts the new pods, also while its controller's counts have old ones.
func TestOldPodsAreNoProgress(t *testing.T) {
	for want, s := range map[string]track.Status{
		"0/2 new":   {Done: 1, Total: 2, Rollout: &track.Rollout{Desired: 2, Updated: 1, Available: 2, Old: 2}},
		"1/3 new":   {Done: 1, Total: 3, Rollout: &track.Rollout{Desired: 3, Updated: 2, Available: 3, Old: 2, NewReady: 1}},
		"2/4 new":   {Done: 2, Total: 4, Rollout: &track.Rollout{Desired: 4, Updated: 2, Available: 4, Old: 2}}, // its pods may not be watched
		"1/2 ready": {Done: 1, Total: 2, Rollout: &track.Rollout{Desired: 2, Updated: 2, Available: 1, NewReady: 1}},
		"":          {},
	} {
		if got := progressText(s, "ready"); got != want {
			t.Errorf("progress of %+v is %q, want %q", s.Rollout, got, want)
		}
	}
}

// TestCauseIsNotSaidTwiceAtTheEnd: the error that follows the report has the words of the cause.
func TestCauseIsNotSaidTwiceAtTheEnd(t *testing.T) {
	for _, follows := range []bool{false, true} {
		s := newStudio(Options{ErrorFollows: func(error) bool { return follows }}, false)
		c := Cause{Finding: track.Finding{Title: "Container crashes", Message: "exit code 1", Logs: []finding.Log{{Lines: []string{"no database"}}}}}
		got := s.verdictLine(Result{Causes: []Cause{c}})
		if strings.Contains(got, "exit code 1;") == follows || !strings.Contains(got, "Container crashes") || !strings.Contains(got, "no database") {
			t.Errorf("if an error follows is %t: %s", follows, got)
		}
	}
}

// TestWantedEvents shows the events of objects whose annotation asks for it,
// and of no others.
func TestWantedEvents(t *testing.T) {
	s := newStudio(Options{}, false)
	for _, wanted := range []bool{true, false} {
		s.HandleEvent(deploy.Event{Event: track.Event{Kind: track.EventSeen, ShowEvent: wanted, Status: track.Status{ID: viewtest.WebID()},
			Seen: &finding.Event{Type: "Warning", Reason: "Unhealthy", Message: fmt.Sprintf("wanted %t", wanted), Object: "Pod/web-0"}}})
	}
	if got := s.err.String(); !strings.Contains(got, "event     Deployment/prod/web Unhealthy: wanted true [Pod/web-0]") || strings.Contains(got, "wanted false") {
		t.Errorf("it wrote %q", got)
	}
}

// TestLogOfWhatIsNotReadyInTime: nobody has found why the Job of a hook isn't ready; what it wrote last may say so.
func TestLogOfWhatIsNotReadyInTime(t *testing.T) {
	s := newStudio(Options{}, false)
	op := viewtest.Upgrade(t)
	migrate := viewtest.ID("batch", "Job", "migrate")
	s.HandleEvent(told(deploy.Began, deploy.Event{Operation: op}))
	s.HandleEvent(told(deploy.Applied, deploy.Event{Step: deploy.StepHook, Change: &apply.Change{ID: migrate, Action: decide.Create}}))
	for i := range 30 {
		s.HandleEvent(deploy.Event{Event: track.Event{Kind: track.LogWritten, Status: track.Status{ID: migrate}, Log: &track.LogLine{
			Pod: "migrate-x7k2p", Container: "app", Text: fmt.Sprint("waiting for the database, attempt ", i),
		}}})
	}
	err := &deploy.HookError{Event: "pre-upgrade", Hook: "web/templates/migrate.yaml", Err: &track.TimeoutError{
		NotReady: []track.Status{{ID: migrate, State: track.Progressing, Message: "0 of 1 succeeded, 1 active", Waited: 15 * time.Second}}, Total: 1, Goal: track.Ready,
	}}
	s.HandleEvent(told(deploy.Ended, deploy.Event{Operation: op, Record: op.Next, Err: err}))
	_ = s.Close(err)
	for _, want := range []string{
		"impact   it failed before the release changed anything\n", "where    migrate-x7k2p, container app\n", "last 20 lines:\n            | waiting for the database, attempt 10\n",
		"show its full log:    kubectl -n prod logs migrate-x7k2p -c app\n", "; its log ends with: waiting for the database, attempt 29\n",
	} {
		if !strings.Contains(s.err.String(), want) {
			t.Errorf("%s\ndoesn't have %s", s.err.String(), want)
		}
	}
}

// TestRunThatNeverBeganIsNamed: of a run that is rejected, all that is known is where it would have been.
func TestRunThatNeverBeganIsNamed(t *testing.T) {
	dir := t.TempDir()
	o := Options{
		Subject:    page.Subject{Release: "web", Namespace: "prod", Place: deploy.Place{Context: "prod-eu", Server: "https://k8s.example.com"}},
		ResultFile: filepath.Join(dir, "result.json"), JUnitFile: filepath.Join(dir, "junit.xml"),
		Getenv: viewtest.Environment(map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": filepath.Join(dir, "summary.md")}),
	}
	if err := newStudio(o, false).Close(errors.New("UPGRADE FAILED: no")); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"result.json": `"release": "web",
  "namespace": "prod",
  "context": "prod-eu",
  "server": "https://k8s.example.com",`,
		"junit.xml":  `<testsuite name="prod/web"`,
		"summary.md": "### ✗ web → prod (prod-eu) FAILED after",
	} {
		got, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || !strings.Contains(string(got), want) {
			t.Errorf("%s doesn't have %s: %v\n%s", file, want, err, got)
		}
	}
}

// TestReportIsLast: what the chart's tests and notes say stands before it.
func TestReportIsLast(t *testing.T) {
	s := newStudio(Options{}, false)
	s.BeforeReport(func(ended error) error {
		_, err := fmt.Fprintf(&s.err, "POD LOGS: web-test, %t\n", ended != nil)
		return err
	})
	s.fail(t, failedError())
	s.closed(t)
	if logs, report := strings.Index(s.err.String(), "POD LOGS: web-test, true\n"), strings.Index(s.err.String(), "\nFAILED  release web"); logs < 0 || logs > report {
		t.Errorf("logs at %d, the report at %d:\n%s", logs, report, s.err.String())
	}
}
