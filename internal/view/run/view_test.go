package run

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
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
	"deployer/apply/ownership"
	"deployer/internal/deploy"
	"deployer/internal/hide"
	"deployer/internal/kube"
	"deployer/internal/view/output"
	"deployer/internal/view/page"
	"deployer/internal/view/plan"
	"deployer/internal/view/viewtest"
	"deployer/release"
	"deployer/track"
	"deployer/track/class"
	"deployer/track/finding"
)

// A studio records what a view writes, with a clock of its own.
type studio struct {
	*View
	out, err bytes.Buffer
	clock    time.Time
}

func newStudio(o Options, tty bool) *studio {
	s := &studio{clock: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)}
	if o.Getenv == nil {
		o.Getenv = viewtest.NoEnv
	}
	if o.ExitCode == nil {
		o.ExitCode = exitCode
	}
	streams := output.Streams{Out: &s.out, Err: &s.err, ErrTTY: tty, Width: 100, Height: 30}.Filtered("deployer")
	s.View = newView(streams, o, func() time.Time { return s.clock }, directOutputs(streams))
	return s
}

func exitCode(err error) int {
	if err != nil {
		return 1
	}
	return 0
}

// after lets time pass, with the ticks that would happen.
func (s *studio) after(d time.Duration) {
	for end := s.clock.Add(d); s.clock.Before(end); {
		s.clock = s.clock.Add(min(tickEvery, end.Sub(s.clock)))
		s.renderer.tick()
	}
}

// told is an event of a kind.
func told(kind track.EventKind, e deploy.Event) deploy.Event {
	e.Kind = kind
	return e
}

func (s *studio) saw(kind track.EventKind, status track.Status) {
	s.HandleEvent(deploy.Event{Event: track.Event{Kind: kind, Time: s.clock, Status: status}})
}

// play is a run up to the wait, with the rest of it left to the caller.
func (s *studio) play(t testing.TB) *deploy.Operation {
	op := viewtest.Upgrade(t)
	s.HandleEvent(told(deploy.Began, deploy.Event{Operation: op}))
	s.HandleEvent(told(deploy.Recorded, deploy.Event{Record: op.Next}))
	s.HandleEvent(told(deploy.StepBegan, deploy.Event{Step: "crds", Objects: 1}))
	for _, c := range op.Plan.CRDs {
		s.HandleEvent(told(deploy.Applied, deploy.Event{Step: "crds", Change: &c}))
	}
	s.HandleEvent(told(deploy.StepEnded, deploy.Event{Step: "crds", Objects: 1}))
	s.HandleEvent(told(deploy.StepBegan, deploy.Event{Step: "pre-upgrade hooks", Objects: 1}))
	s.HandleEvent(told(deploy.Applied, deploy.Event{Step: "hook", Change: &apply.Change{ID: viewtest.ID("batch", "Job", "migrate"), Action: decide.Create}}))
	s.after(time.Second)
	for _, text := range []string{"applying 0042_orders.sql", "done"} {
		s.HandleEvent(deploy.Event{Event: track.Event{Kind: track.LogWritten, Status: track.Status{ID: viewtest.ID("batch", "Job", "migrate")}, Log: &track.LogLine{
			Pod: "migrate-x7k2p", Container: "app", Text: text,
		}}})
	}
	s.after(time.Second)
	s.saw(track.StatusChanged, track.Status{ID: viewtest.ID("batch", "Job", "migrate"), State: track.Ready, Message: "complete"})
	s.HandleEvent(told(deploy.HookRan, deploy.Event{Hook: op.Hooks.Before[0], Took: 2 * time.Second}))
	s.HandleEvent(told(deploy.StepEnded, deploy.Event{Step: "pre-upgrade hooks", Objects: 1, Took: 2 * time.Second}))
	s.HandleEvent(told(deploy.StepBegan, deploy.Event{Step: "apply", Objects: 7}))
	for _, wave := range op.Plan.Waves {
		for _, c := range wave.Changes {
			s.HandleEvent(told(deploy.Applied, deploy.Event{Step: "apply", Change: &c}))
		}
	}
	s.HandleEvent(told(deploy.StepEnded, deploy.Event{Step: "apply", Objects: 7}))
	s.HandleEvent(told(deploy.StepBegan, deploy.Event{Step: "wait", Objects: 7}))
	for _, name := range []kube.ID{viewtest.ID("", "ServiceAccount", "web"), viewtest.ID("", "ConfigMap", "web"), viewtest.ID("", "Secret", "db"), viewtest.ID("", "Secret", "new")} {
		s.saw(track.StatusChanged, track.Status{ID: name, State: track.Ready})
	}
	s.saw(track.StatusChanged, track.Status{ID: viewtest.WebID(), State: track.Progressing, Message: "0 of 3 pods ready", Done: 0, Total: 3})
	s.saw(track.StatusChanged, track.Status{ID: viewtest.ID("example.com", "Foo", "foo"), State: track.Progressing, Message: "Issuing: DNS-01 challenge pending"})
	s.after(time.Second)
	return op
}

func (s *studio) succeed(t testing.TB) {
	op := s.play(t)
	p := pull()
	s.saw(track.ProblemSeen, track.Status{ID: viewtest.WebID(), State: track.Progressing, Total: 3, Finding: &p, Rollout: &track.Rollout{Desired: 3, OldServing: 1}})
	s.saw(track.ProblemSeen, track.Status{ID: viewtest.WebID(), State: track.Progressing, Total: 3, Finding: &p}) // the same again
	s.after(40 * time.Second)
	s.Warn("spec.x is deprecated")
	s.Warn("spec.x is deprecated")
	s.saw(track.Recovered, track.Status{ID: viewtest.WebID(), State: track.Progressing, Done: 2, Total: 3, Message: "2 of 3 pods ready"})
	s.after(8 * time.Second)
	s.saw(track.StatusChanged, track.Status{ID: viewtest.WebID(), State: track.Ready, Done: 3, Total: 3})
	s.saw(track.StatusChanged, track.Status{ID: viewtest.ID("batch", "Job", "once"), State: track.Ready, Notes: []string{"suspended"}})
	s.saw(track.StatusChanged, track.Status{ID: viewtest.ID("example.com", "Foo", "foo"), State: track.Ready, Unverified: true})
	s.HandleEvent(told(deploy.StepEnded, deploy.Event{Step: "wait", Objects: 7, Took: 49 * time.Second}))
	s.HandleEvent(told(deploy.StepBegan, deploy.Event{Step: "prune", Objects: 2}))
	for _, c := range op.Plan.Prune {
		s.HandleEvent(told(deploy.Applied, deploy.Event{Step: "prune", Change: &c}))
	}
	s.HandleEvent(told(deploy.StepEnded, deploy.Event{Step: "prune", Objects: 2}))
	s.HandleEvent(told(deploy.HookRan, deploy.Event{Hook: op.Hooks.After[0], Took: time.Second}))
	op.Next.Info.Status = helmrelease.StatusDeployed
	s.HandleEvent(told(deploy.Recorded, deploy.Event{Record: op.Next}))
	s.HandleEvent(told(deploy.Ended, deploy.Event{Operation: op, Record: op.Next, Took: s.clock.Sub(s.began)}))
}

func failedError() error {
	exit := int32(1)
	crash := track.Finding{
		Class:     class.CrashLoop,
		Title:     "Container crashes",
		Message:   "back-off restarting failed container",
		Container: "app", Attempts: 2, Limit: 3, ExitCode: &exit, Reason: "Error",
		Pods: []string{"api-77c9-zz1p4"}, PodCount: 1, PodTotal: 4, Nodes: []string{"node-3"}, SuspectNode: "node-3",
		Logs: []finding.Log{{Pod: "api-77c9-zz1p4", Container: "app", Previous: true, Lines: []string{"connecting to pg:5432", "FATAL: no route to host"}}},
	}
	pull := foundAt(pull(), true, viewtest.WebID(), viewtest.ID("apps", "Deployment", "worker"))
	pull.Rollout, pull.Blocks = &track.Rollout{Desired: 3, OldServing: 3}, []kube.ID{{Kind: "APIService", Name: "v1.shop"}}
	return &track.FailedError{
		Causes: []track.Finding{
			pull,
			foundAt(crash, false, viewtest.ID("apps", "Deployment", "api")),
		},
		Waited: 15 * time.Second,
	}
}

func (s *studio) fail(t testing.TB, err error) *deploy.Operation {
	op := s.play(t)
	p := pull()
	s.saw(track.ProblemSeen, track.Status{ID: viewtest.WebID(), State: track.Progressing, Total: 3, Finding: &p})
	s.after(15 * time.Second)
	s.saw(track.StatusChanged, track.Status{ID: viewtest.WebID(), State: track.Failed, Total: 3, Finding: &p})
	s.HandleEvent(told(deploy.StepEnded, deploy.Event{Step: "wait", Objects: 7, Took: 16 * time.Second, Err: err}))
	op.Next.Info.Status = helmrelease.StatusFailed
	s.HandleEvent(told(deploy.Ended, deploy.Event{Operation: op, Record: op.Next, Took: s.clock.Sub(s.began), Err: err}))
	return op
}

func (s *studio) both() []byte {
	return []byte("-- stdout --\n" + s.out.String() + "-- stderr --\n" + s.err.String())
}

// end closes the view of a run that ended as it told.
func (v *View) end() error {
	if v.current.ended == nil {
		return v.Close(nil)
	}
	err := v.current.ended.Err
	if v.failed != nil && err == nil {
		err = v.failed.ended.Err
	}
	return v.Close(err)
}

// closed closes the view and hands over what it wrote.
func (s *studio) closed(t testing.TB) []byte {
	t.Helper()
	if err := s.end(); err != nil {
		t.Fatal(err)
	}
	checkSecretsOf(t, s.out.String()+s.err.String())
	return s.both()
}

func checkSecretsOf(t testing.TB, out string) {
	t.Helper()
	if strings.Contains(out, viewtest.Planted) || strings.Contains(out, viewtest.PlantedBase64) {
		t.Errorf("a Secret's value is in the output:\n%s", out)
	}
}

func TestEventsPlain(t *testing.T) {
	s := newStudio(Options{}, false)
	s.succeed(t)
	viewtest.Golden(t, "run-success.txt.golden", s.closed(t))
	if s.Reported(nil) {
		t.Error("Reported(nil) is true")
	}

	err := failedError()
	s = newStudio(Options{ResultFile: filepath.Join(t.TempDir(), "result.json")}, false)
	s.opts.ResultFile = ""
	s.fail(t, err)
	viewtest.Golden(t, "run-failure.txt.golden", s.closed(t))
	if !s.Reported(err) || !s.Reported(fmt.Errorf("wrapped: %w", err)) || s.Reported(errors.New("other")) {
		t.Error("Reported doesn't know what was reported")
	}
}

func TestEventsASCII(t *testing.T) {
	s := newStudio(Options{Getenv: viewtest.Environment(map[string]string{"LANG": "C"})}, false)
	s.fail(t, failedError())
	for _, r := range s.closed(t) {
		if r > 127 {
			t.Fatalf("beyond ASCII in a locale without UTF-8:\n%s", s.err.String())
		}
	}
}

func TestEventsJSON(t *testing.T) {
	for name, play := range map[string]func(*studio){
		"success": func(s *studio) { s.succeed(t) },
		"failure": func(s *studio) { s.fail(t, failedError()) },
	} {
		s := newStudio(Options{Format: output.FormatJSON}, false)
		play(s)
		viewtest.Golden(t, "run-"+name+".json.golden", s.closed(t))
		if s.err.Len() > 0 {
			t.Errorf("%s: standard error isn't empty: %s", name, s.err.String())
		}
		var last map[string]any
		for _, l := range strings.Split(strings.TrimSpace(s.out.String()), "\n") {
			last = nil
			if err := json.Unmarshal([]byte(l), &last); err != nil || last["format"] != 1.0 || last["event"] == "" {
				t.Errorf("%s: %v in %s", name, err, l)
			}
		}
		if last["event"] != "ended" {
			t.Errorf("%s: the last event is %v", name, last["event"])
		}
	}
}

func TestEventsYAML(t *testing.T) {
	s := newStudio(Options{Format: output.FormatYAML, Progress: "none"}, false)
	s.succeed(t)
	viewtest.Golden(t, "run-success.yaml.golden", s.closed(t))
}

func TestEventsNone(t *testing.T) {
	const planned = "Warning: values: \"image.tagg\" is not in the chart's schema\nWarning: ConfigMap/prod/web: data.x has no value: sent as an empty string (web/templates/config.yaml)\n"
	s := newStudio(Options{Progress: "none"}, false)
	s.succeed(t)
	if got := s.closed(t); string(got) != "-- stdout --\n-- stderr --\n"+planned+"Warning: spec.x is deprecated\n" {
		t.Errorf("progress none wrote:\n%s", got)
	}
	s = newStudio(Options{Quiet: true}, false)
	s.succeed(t)
	if got := s.closed(t); string(got) != "-- stdout --\n-- stderr --\n" {
		t.Errorf("quiet wrote:\n%s", got)
	}
	s = newStudio(Options{Quiet: true}, false)
	s.fail(t, failedError())
	if got := s.closed(t); !strings.HasPrefix(string(got), "-- stdout --\n-- stderr --\n"+planned) {
		t.Errorf("quiet, after a failure, wrote:\n%s", got)
	}
}

func TestEventsGitHub(t *testing.T) {
	summaryPath := filepath.Join(t.TempDir(), "summary.md")
	s := newStudio(Options{Getenv: viewtest.Environment(map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": summaryPath, "CI": "true"})}, true)
	s.fail(t, failedError())
	viewtest.Golden(t, "run-github.txt.golden", s.closed(t))
	summary, err := os.ReadFile(summaryPath)
	if err != nil {
		t.Fatal(err)
	}
	viewtest.Golden(t, "run-github.md.golden", summary)
}

func TestEventsGitLab(t *testing.T) {
	s := newStudio(Options{Getenv: viewtest.Environment(map[string]string{"GITLAB_CI": "true"})}, false)
	s.fail(t, failedError())
	viewtest.Golden(t, "run-gitlab.txt.golden", s.closed(t))
}

// TestEventsErrors shows the reports of failures other than tracking's.
func TestEventsErrors(t *testing.T) {
	web := viewtest.WebID()
	notReady := []track.Status{
		{ID: web, State: track.Progressing, Message: "1 of 3 pods ready", Waited: 5 * time.Minute},
		{ID: viewtest.ID("", "Service", "web"), State: track.Progressing, Message: "no load balancer address", Waited: 5 * time.Minute},
	}
	for name, err := range map[string]error{
		"object": errors.Join(
			&apply.ObjectError{ID: web, Source: "web/templates/web.yaml", Doing: "updating", Err: errors.New("admission webhook \"policy\" denied the request: no latest tags")},
			&apply.ObjectError{ID: viewtest.ID("", "Service", "web"), Doing: "creating", Err: &apply.OwnershipError{ID: viewtest.ID("", "Service", "web"), Text: "label missing"}},
		),
		"rejected": &apply.RejectedError{Rejections: []apply.Rejection{
			{ID: web, Source: "web/templates/web.yaml", Err: &apply.ConflictError{Fields: []apply.FieldConflict{{Path: "spec.replicas", FieldManager: ownership.FieldManager{Manager: "hpa"}, Before: "5", After: "3"}}}},
			{ID: viewtest.ID("", "Service", "web"), Err: &apply.InvalidError{Field: "spec.ports", Text: "required value"}},
		}},
		"rejected-late": &apply.RejectedError{When: apply.AfterChanges, Rejections: []apply.Rejection{
			{ID: viewtest.ID("example.com", "Widget", "w"), Source: "web/templates/widget.yaml", Err: &apply.InvalidError{Field: "spec.size", Text: "should be less than or equal to 100"}},
		}},
		"hook":             &deploy.HookError{Event: "pre-upgrade", Hook: "web/templates/migrate.yaml", Err: hookFailure()},
		"timeout":          &track.TimeoutError{NotReady: notReady, Total: 7, Goal: track.Ready, Waited: 5 * time.Minute, Err: errors.New("deadline")},
		"pending":          fmt.Errorf("UPGRADE FAILED: %w", &release.PendingError{Namespace: "prod", Name: "web", Revision: 6, Status: helmrelease.StatusPendingUpgrade, Grace: time.Hour}),
		"stopped":          interrupted{},
		"stopped-requests": errors.Join(interrupted{}, fmt.Errorf("Get \"https://192.0.2.1/x\": %w", interrupted{}), &apply.ObjectError{Doing: "reading", Err: interrupted{}}),
		"lost":             &track.UnreachableError{For: 2 * time.Minute, Err: errors.New("connection refused")},
		"plain":            errors.New("writing the record of revision 7: conflict\nsecond line"),
	} {
		code := map[string]int{"stopped": 130, "stopped-requests": 130, "rejected": 3, "pending": 5}[name]
		s := newStudio(Options{Progress: "none", ExitCode: func(error) int { return max(code, 1) }}, false)
		s.fail(t, err)
		viewtest.Golden(t, "error-"+name+".txt.golden", s.closed(t))
	}
}

// interrupted is an error as the program makes it of a signal.
type interrupted struct{}

func (interrupted) Error() string        { return "stopped by SIGINT" }
func (interrupted) Is(target error) bool { return target == context.Canceled }

func hookFailure() error {
	p := track.Finding{
		Class:     class.JobFailed,
		Title:     "Job failed",
		Message:   "BackoffLimitExceeded",
		Container: "app",
		Pods:      []string{"migrate-x7k2p"},
		Logs:      []finding.Log{{Pod: "migrate-x7k2p", Container: "app", Lines: []string{"relation \"orders\" does not exist"}}},
	}
	return &track.FailedError{Causes: []track.Finding{foundAt(p, true, viewtest.ID("batch", "Job", "migrate"))}}
}

// TestHeartbeat says after half a minute of silence what the run is at.
func TestHeartbeat(t *testing.T) {
	s := newStudio(Options{}, false)
	want := func(text string) {
		t.Helper()
		from := s.err.Len()
		s.after(31 * time.Second)
		if got := s.err.String()[from:]; !strings.Contains(got, "waiting   "+text) {
			t.Errorf("it said %q, want %q", got, text)
		}
	}
	step := func(name string, err error) {
		t.Helper()
		s.HandleEvent(told(deploy.StepBegan, deploy.Event{Step: deploy.Step(name), Objects: 1}))
		if name == "wait" {
			s.saw(track.StatusChanged, track.Status{ID: viewtest.WebID(), State: track.Progressing, Message: "slow"})
			want("1 left: Deployment/prod/web (slow)")
		} else {
			want("for the step " + name)
		}
		s.HandleEvent(told(deploy.StepEnded, deploy.Event{Step: deploy.Step(name), Objects: 1, Err: err}))
		want("for the record of the release")
	}
	want("for the plan and the lock of the release")
	op := viewtest.Upgrade(t)
	s.HandleEvent(told(deploy.Began, deploy.Event{Operation: op}))
	want("for the record of the release")
	for _, name := range []string{"crds", "pre-upgrade hooks", "apply"} {
		step(name, nil)
	}
	step("wait", failedError())
}

// TestLogOfAnEarlierRun is asked for where there was one: a Job makes new pods.
func TestLogOfAnEarlierRun(t *testing.T) {
	for crashes, want := range map[int]bool{0: false, 1: false, 2: true} {
		p := track.Finding{Container: "app", Attempts: crashes, Pods: []string{"migrate-x7k2p"}}
		suggested := suggestions(class.CrashLoop, viewtest.ID("batch", "Job", "migrate"), p)
		if got := strings.HasSuffix(suggested[0].Command, " --previous"); got != want {
			t.Errorf("%d crashes: %s", crashes, suggested[0].Command)
		}
	}
}

// TestNothingGoneIsPointedAt after a rollback: neither pods, but those of hooks that
// stay, nor what was deleted.
func TestNothingGoneIsPointedAt(t *testing.T) {
	job := track.Finding{Class: class.JobFailed, Container: "app", Pods: []string{"a-1"}}
	r := Result{
		Rollback: &Result{Objects: []ObjectResult{{Object: "Job/prod/dropped", Action: "delete"}, {Object: "Deployment/prod/web", Action: "update"}}},
		Causes: []Cause{
			{Finding: foundAt(job, true, viewtest.WebID())},
			{Finding: foundAt(job, true, viewtest.ID("batch", "Job", "kept")), Hook: "pre-upgrade hook"},
			{Finding: foundAt(job, true, viewtest.ID("batch", "Job", "dropped")), Hook: "pre-upgrade hook"},
			{Finding: foundAt(track.Finding{Class: class.QuotaExceeded}, true, viewtest.ID("batch", "Job", "dropped"))},
		},
	}
	(&runState{}).suggest(&r, nil)
	for i, want := range []string{"describe the object", "show its full log, describe the object", "", "describe the limits"} {
		var got []string
		for _, s := range r.Causes[i].Next {
			got = append(got, s.What)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %v, want %s", r.Causes[i].Objects[0], got, want)
		}
	}
}

// TestNoWayBackFromNothing fails if a run that couldn't be recorded, because another run was faster or a quota
// is exceeded, suggests a rollback: it has changed nothing, and would undo what the other run has deployed.
func TestNoWayBackFromNothing(t *testing.T) {
	s := newStudio(Options{}, false)
	op := viewtest.Upgrade(t)
	s.HandleEvent(told(deploy.Began, deploy.Event{Operation: op}))
	s.HandleEvent(told(deploy.Ended, deploy.Event{Operation: op, Err: &release.HistoryChangedError{Namespace: "prod", Name: "web", Revision: 7}}))
	got := string(s.closed(t))
	if !strings.Contains(got, "REJECTED, nothing was changed") || strings.Contains(got, "rollback web") {
		t.Errorf("it wrote:\n%s", got)
	}
}

// TestNoWayBackOverAnother fails if a rollback is suggested after the undo of a run found that another run has the
// release: it would undo what that one does.
func TestNoWayBackOverAnother(t *testing.T) {
	for _, rollback := range []error{&release.HistoryChangedError{Namespace: "prod", Name: "web", Revision: 7}, &release.LockLostError{Namespace: "prod", Name: "web"}} {
		s := newStudio(Options{}, false)
		s.fail(t, failedError())
		if err := s.Close(&deploy.RolledBackError{Release: "web", Verb: deploy.Rollback, Cause: failedError(), Rollback: rollback}); err != nil {
			t.Fatal(err)
		}
		if got := string(s.closed(t)); strings.Contains(got, "rollback web") {
			t.Errorf("%v: it wrote:\n%s", rollback, got)
		}
	}
}

// TestNoWayBackFromSuccess fails if a rollback is suggested when all was deployed, and only that couldn't be recorded.
func TestNoWayBackFromSuccess(t *testing.T) {
	s := newStudio(Options{}, false)
	op := viewtest.Upgrade(t)
	op.Next.Info.Status = helmrelease.StatusDeployed
	s.HandleEvent(told(deploy.Began, deploy.Event{Operation: op}))
	s.HandleEvent(told(deploy.Ended, deploy.Event{Operation: op, Record: op.Next, Err: errors.New("everything was deployed, but that couldn't be recorded: forbidden")}))
	if got := string(s.closed(t)); !strings.Contains(got, "FAILED") || strings.Contains(got, "rollback web") {
		t.Errorf("it wrote:\n%s", got)
	}
}

// TestNoWayBackToTheSame names no revision to go back to when the release has
// changed nothing about what failed before.
func TestNoWayBackToTheSame(t *testing.T) {
	for action, want := range map[decide.Action]bool{decide.Unchanged: false, decide.Update: true} {
		s := newStudio(Options{}, false)
		op := viewtest.Upgrade(t)
		err := &track.FailedError{Causes: []track.Finding{{Class: class.CrashLoop, Fatal: true, BeforeRelease: true, Objects: []kube.ID{viewtest.WebID()}}}}
		s.HandleEvent(told(deploy.Began, deploy.Event{Operation: op}))
		s.HandleEvent(told(deploy.Applied, deploy.Event{Step: "apply", Change: &apply.Change{ID: viewtest.WebID(), Action: action}}))
		s.HandleEvent(told(deploy.Ended, deploy.Event{Operation: op, Record: op.Next, Err: err}))
		if got := strings.Contains(string(s.closed(t)), "deployer rollback web 6 -n prod"); got != want {
			t.Errorf("%s: it tells how to go back: %v, want %v", action, got, want)
		}
	}
}

// TestEventsUndo shows a failed run and the rollback after it as one.
func TestEventsUndo(t *testing.T) {
	for name, rollback := range map[string]error{"done": nil, "failed": errors.New("no such revision")} {
		cause := failedError()
		rolled := &deploy.RolledBackError{Release: "web", Verb: deploy.Rollback, Cause: cause, Rollback: rollback}
		for _, format := range []output.Format{output.FormatTable, output.FormatJSON} {
			s := newStudio(Options{Format: format, ExitCode: func(err error) int {
				if errors.As(err, new(*deploy.RolledBackError)) {
					return 6
				}
				return 1
			}}, false)
			s.fail(t, cause)
			back := &deploy.Operation{Verb: deploy.Rollback, Release: "web", Namespace: "prod", Target: 6, Basis: deploy.Basis{Latest: viewtest.Summary(7, "failed")}, Next: viewtest.Record(8, "deployed"), Plan: &apply.Plan{}}
			if rollback != nil {
				back.Next.Info.Status = helmrelease.StatusFailed
			}
			s.HandleEvent(told(deploy.Began, deploy.Event{Operation: back}))
			s.after(time.Second)
			s.HandleEvent(told(deploy.Ended, deploy.Event{Operation: back, Record: back.Next, Took: time.Second, Err: rollback}))
			if err := s.Close(rolled); err != nil {
				t.Fatal(err)
			}
			viewtest.Golden(t, fmt.Sprintf("undo-%s.%s.golden", name, format), s.closed(t))
			if !s.Reported(rolled) {
				t.Errorf("%s: not reported", name)
			}
		}
	}
}

// TestWarningsOfAnUndo: what its plan warns of is told, but for what the failed run has told already.
func TestWarningsOfAnUndo(t *testing.T) {
	for name, o := range map[string]Options{"nothing else": {Progress: "none"}, "quiet": {Quiet: true}, "lines": {Progress: "plain"}, "json": {Format: output.FormatJSON}} {
		s := newStudio(o, false)
		op := s.fail(t, failedError())
		back := &deploy.Operation{Verb: deploy.Rollback, Release: "web", Namespace: "prod", Target: 6, Next: viewtest.Record(8, "deployed"),
			Warnings: []string{"v1 Foo is gone"}, Plan: &apply.Plan{Warnings: op.Plan.Warnings}}
		s.HandleEvent(told(deploy.Began, deploy.Event{Operation: back}))
		s.Warn("v1 Foo is gone")
		s.HandleEvent(told(deploy.Ended, deploy.Event{Operation: back, Record: back.Next}))
		if err := s.Close(&deploy.RolledBackError{Release: "web", Verb: deploy.Rollback, Cause: failedError()}); err != nil {
			t.Fatal(err)
		}
		events, _, _ := strings.Cut(s.out.String()+s.err.String(), `"event":"ended"`)
		for _, want := range []string{"data.x has no value", "v1 Foo is gone"} {
			if n := strings.Count(events, want); n != 1 {
				t.Errorf("%s: %q is told %d times:\n%s", name, want, n, events)
			}
		}
	}
}

func TestEventsInjection(t *testing.T) {
	for _, tty := range []bool{false, true} {
		for _, env := range []func(string) string{viewtest.NoEnv, viewtest.Environment(map[string]string{"GITHUB_ACTIONS": "true", "CI": "1"})} {
			s := newStudio(Options{Getenv: env, Colour: output.ColourNever, ExitCode: func(error) int { return 1 }}, tty)
			op := viewtest.Upgrade(t)
			op.Warnings = []string{viewtest.Hostile}
			op.Plan.Prune[0].ID.Name = viewtest.Hostile
			c := &op.Plan.Waves[1].Changes[0]
			c.Reason, c.Unverified, c.Source, c.Conflicts[0].Manager = viewtest.Hostile, viewtest.Hostile, viewtest.Hostile, viewtest.Hostile
			s.HandleEvent(told(deploy.Began, deploy.Event{Operation: op}))
			evil := viewtest.Hostile + "\n::error::x ##[error]y"
			p := track.Finding{
				Class:     "x",
				Title:     evil,
				Message:   evil,
				Advice:    evil,
				Container: evil, Image: evil, Reason: evil,
				Pods: []string{evil}, Nodes: []string{evil}, PodCount: 1, PodTotal: 1,
				Events: []finding.Event{{Type: evil, Reason: evil, Message: evil, Object: evil}}, Logs: []finding.Log{{Pod: evil, Container: evil, Lines: []string{evil}}, {Pod: evil, UnavailableReason: evil}},
			}
			s.HandleEvent(deploy.Event{Event: track.Event{Kind: track.LogWritten, Status: track.Status{ID: viewtest.WebID()}, Log: &track.LogLine{Pod: evil, Container: evil, Text: "\r" + evil}}})
			s.saw(track.StatusChanged, track.Status{ID: viewtest.WebID(), State: track.Progressing, Message: evil})
			s.after(35 * time.Second)
			s.saw(track.ProblemSeen, track.Status{ID: viewtest.WebID(), State: track.Progressing, Finding: &p})
			s.after(35 * time.Second)
			s.Warn(evil)
			err := errors.Join(&track.FailedError{Causes: []track.Finding{foundAt(p, true, viewtest.WebID())}}, errors.New(evil))
			s.HandleEvent(told(deploy.Ended, deploy.Event{Operation: op, Record: op.Next, Err: err}))
			if cerr := s.end(); cerr != nil {
				t.Fatal(cerr)
			}
			got := s.err.String()
			for _, bad := range []string{"\x1b[2J", "\x1b]", "\x07", "\u009b", "\u202e", "\x00", "\x1b[31m"} {
				if strings.Contains(got, bad) {
					at := strings.Index(got, bad)
					t.Errorf("%q reached the terminal (tty %v): %q", bad, tty, got[max(0, at-60):min(len(got), at+60)])
				}
			}
			if !tty && strings.Contains(got, "\r") {
				t.Errorf("a carriage return reached the log:\n%q", got)
			}
			if s.ci.github {
				for _, l := range strings.Split(got, "\n") {
					if strings.Contains(l, "##[") || strings.HasPrefix(strings.TrimSpace(l), "::error::") {
						t.Errorf("a command reached GitHub: %q", l)
					}
				}
			}
		}
	}
}

func TestResultFiles(t *testing.T) {
	dir := t.TempDir()
	s := newStudio(Options{ResultFile: filepath.Join(dir, "result.json"), JUnitFile: filepath.Join(dir, "junit.xml")}, false)
	s.fail(t, failedError())
	if err := s.end(); err != nil {
		t.Fatal(err)
	}
	for file, name := range map[string]string{"result.json": "result.json.golden", "junit.xml": "junit.xml.golden"} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		viewtest.CheckSecrets(t, string(data))
		viewtest.Golden(t, name, data)
		info, err := os.Stat(filepath.Join(dir, file))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", file, info.Mode(), err)
		}
		if file == "junit.xml" && xml.Unmarshal(data, new(junitSuites)) != nil {
			t.Errorf("junit.xml can't be read")
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("files are left: %v", left)
	}
	if err := writeResult(filepath.Join(dir, "none", "x"), Result{}); err == nil {
		t.Error("no error for a directory that isn't there")
	}
}

// TestEventsHide has what is confidential in all that a failure says, and looks
// for it wherever that is written, and however it is escaped there.
func TestEventsHide(t *testing.T) {
	const secret = `p_<s>&"%* w'9`
	hidden := &hide.Texts{}
	hidden.AddValues(map[string]any{"password": secret})
	for _, tty := range []bool{false, true} {
		dir := t.TempDir()
		file := func(name string) string { return filepath.Join(dir, name) }
		s := newStudio(Options{
			Getenv:     viewtest.Environment(map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": file("summary")}),
			ResultFile: file("result"), JUnitFile: file("junit"), Hidden: hidden,
		}, tty)
		p := track.Finding{
			Class:   "x",
			Title:   "it says " + secret,
			Message: strings.Repeat("words ", 12) + secret,
			Events:  []finding.Event{{Message: secret}}, Logs: []finding.Log{{Pod: "p", Lines: []string{"with " + secret + "."}}},
		}
		s.Warn("beware of " + secret)
		s.fail(t, errors.Join(&track.FailedError{Causes: []track.Finding{foundAt(p, true, viewtest.WebID())}}, errors.New("and "+secret)))
		out := string(s.closed(t))
		for _, name := range []string{"summary", "result", "junit"} {
			data, err := os.ReadFile(file(name))
			if err != nil {
				t.Fatal(err)
			}
			out += string(data)
		}
		plain := strings.NewReplacer("\\", "", "&lt;", "<", "&gt;", ">", "&amp;", "&", "&#34;", `"`, "&#39;", "'", "%25", "%", "u003c", "<", "u003e", ">", "u0026", "&").Replace(out)
		if i := strings.Index(plain, "p_<s"); i >= 0 {
			t.Errorf("tty %v: %q", tty, plain[max(0, i-80):min(len(plain), i+60)])
		}
		if n := strings.Count(plain, hide.Placeholder); n < 12 {
			t.Errorf("tty %v: only %d places:\n%s", tty, n, out)
		}
	}
}

// TestWarningsHidePasswordsOfURLs: libraries quote the URLs of repositories, with the password that
// somebody has written into one.
func TestWarningsHidePasswordsOfURLs(t *testing.T) {
	const text = "reading https://me:hunter2@charts.example.com/index.yaml took long"
	for name, o := range map[string]Options{"nothing else": {Progress: "none"}, "lines": {Progress: "plain"}, "json": {Format: output.FormatJSON}} {
		s := newStudio(o, false)
		s.Warn("before: " + text)
		op := viewtest.Upgrade(t)
		op.Warnings = []string{"at the plan: " + text}
		op.Plan.Warnings = append(op.Plan.Warnings, apply.Warning{Text: "by the plan: " + text})
		s.HandleEvent(told(deploy.Began, deploy.Event{Operation: op}))
		s.HandleEvent(deploy.Event{Event: track.Event{Kind: track.Warned, Text: "in the run: " + text}})
		out := string(s.closed(t))
		if strings.Contains(out, "hunter2") || strings.Count(out, "me:xxxxx@charts.example.com") < 4 {
			t.Errorf("%s:\n%s", name, out)
		}
	}
}

// TestSummaryTable: what isn't said of a run must not be what it left or gave to others.
func TestSummaryTable(t *testing.T) {
	for want, s := range map[string]ResultSummary{
		"| created | updated | recreated | deleted | unchanged |\n|---|---|---|---|---|\n| 1 | 0 | 0 | 2 | 3 |\n":                                     {Created: 1, Deleted: 2, Unchanged: 3},
		"| created | updated | recreated | deleted | given back | kept | unchanged |\n|---|---|---|---|---|---|---|\n| 0 | 0 | 0 | 0 | 1 | 2 | 0 |\n": {GivenBack: 1, Kept: 2},
	} {
		if got := s.markdown(); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	}
}

// TestReportsHide has what is confidential in all texts of reports that come while a run is
// shown, and looks for it in lines, on a terminal and in JSON.
func TestReportsHide(t *testing.T) {
	const secret = "correct-horse-battery"
	hidden := &hide.Texts{}
	hidden.AddValues(map[string]any{"password": secret})
	problem := track.Finding{Class: "x", Title: "title " + secret, Message: "message " + secret, Advice: "advice " + secret}
	event := finding.Event{Reason: "Odd", Message: "event " + secret, Object: "Pod/web"}
	for name, o := range map[string]Options{"lines": {Progress: "plain"}, "terminal": {}, "json": {Format: output.FormatJSON}} {
		o.Hidden = hidden
		s := newStudio(o, name == "terminal")
		s.HandleEvent(told(deploy.Began, deploy.Event{Operation: viewtest.Upgrade(t)}))
		status := track.Status{ID: viewtest.WebID(), State: track.Progressing, Message: "status " + secret, Finding: &problem}
		s.saw(track.ProblemSeen, status)
		s.after(time.Second)
		s.saw(track.Recovered, track.Status{ID: status.ID, State: track.Progressing, Message: status.Message})
		s.saw(track.StatusChanged, track.Status{ID: status.ID, State: track.Ready, Notes: []string{"note " + secret}})
		for _, r := range []track.Event{
			{Kind: track.LogWritten, Status: track.Status{ID: status.ID}, Log: &track.LogLine{Pod: "web-1", Text: "log " + secret}},
			{Kind: track.EventSeen, Status: track.Status{ID: status.ID}, Seen: &event, ShowEvent: true},
			{Kind: track.Warned, Text: "warning " + secret},
			{Kind: track.APILost, Text: "lost " + secret},
		} {
			s.HandleEvent(deploy.Event{Event: r})
		}
		out := string(s.closed(t))
		if strings.Contains(out, secret) {
			t.Errorf("%s: a confidential text is shown:\n%s", name, out)
		}
		if n := strings.Count(out, hide.Placeholder); n < 6 {
			t.Errorf("%s: only %d places:\n%s", name, n, out)
		}
	}
	if problem.Message != "message "+secret || event.Message != "event "+secret {
		t.Error("the view has changed what others hold")
	}
}

// TestEventsSilence has a run of 90 s without news: it is never silent for long,
// and never says much.
func TestEventsSilence(t *testing.T) {
	s := newStudio(Options{}, false)
	op := &deploy.Operation{Verb: deploy.Upgrade, Release: "web", Namespace: "prod", Next: viewtest.Record(7, "deployed"), Plan: &apply.Plan{
		Waves: []apply.Wave{{Changes: []apply.Change{{ID: viewtest.WebID(), Action: decide.Update}}}},
	}}
	s.HandleEvent(told(deploy.Began, deploy.Event{Operation: op}))
	s.HandleEvent(told(deploy.StepBegan, deploy.Event{Step: "wait", Objects: 1}))
	for i := range 9 {
		s.saw(track.StatusChanged, track.Status{ID: viewtest.WebID(), State: track.Progressing, Message: fmt.Sprintf("%d of 9 pods ready", i), Done: i, Total: 9})
		s.after(10 * time.Second)
	}
	s.saw(track.StatusChanged, track.Status{ID: viewtest.WebID(), State: track.Ready, Done: 9, Total: 9})
	s.HandleEvent(told(deploy.Ended, deploy.Event{Operation: op, Took: 90 * time.Second}))
	viewtest.Golden(t, "run-silence.txt.golden", s.closed(t))
	if n := strings.Count(s.err.String(), "\n"); n > 12 {
		t.Errorf("%d lines are too many:\n%s", n, s.err.String())
	}
}

// TestEventsBefore shows what fails before there is an operation: text is left
// to the caller, JSON is complete.
func TestEventsBefore(t *testing.T) {
	busy := errors.New("another run holds the release")
	for format, reported := range map[output.Format]bool{output.FormatTable: false, output.FormatJSON: true} {
		s := newStudio(Options{Format: format, ExitCode: func(error) int { return 5 }}, false)
		if err := s.Close(busy); err != nil {
			t.Fatal(err)
		}
		if s.Reported(busy) != reported {
			t.Errorf("%s: Reported = %v", format, !reported)
		}
		if format == output.FormatTable && s.err.Len() > 0 {
			t.Errorf("wrote %q", s.err.String())
		}
		if format == output.FormatJSON && !strings.Contains(s.out.String(), `"exit_code":5`) {
			t.Errorf("wrote %q", s.out.String())
		}
	}
}

// failingWriter is a stream that has been closed at the other end.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestEventsWriteError(t *testing.T) {
	failing := output.Streams{Out: failingWriter{}, Err: failingWriter{}}
	e := newView(failing, Options{Getenv: viewtest.NoEnv, ExitCode: exitCode}, time.Now, directOutputs(failing))
	e.Warn("x")
	if err := e.end(); err == nil {
		t.Error("Close didn't report the failed write")
	}
	if err := plan.Show(output.Streams{Out: failingWriter{}}, viewtest.Upgrade(t), page.Options{}); err == nil {
		t.Error("Plan didn't report the failed write")
	}
}

// What was warned of while the lock was taken isn't told again when the run
// begins; what the plan warns of is.
func TestEarlyWarningsAreToldOnce(t *testing.T) {
	s := newStudio(Options{Progress: "plain"}, false)
	s.Warn("revision 6 was left pending")
	op := viewtest.Upgrade(t)
	op.Warnings = []string{"the chart is deprecated"}
	s.HandleEvent(told(deploy.Began, deploy.Event{Operation: op}))
	for _, want := range []string{"revision 6 was left pending", "the chart is deprecated"} {
		if got := strings.Count(s.err.String(), want); got != 1 {
			t.Errorf("%q is told %d times:\n%s", want, got, s.err.String())
		}
	}
}

// directOutputs write at once, in the goroutine of who writes.
func directOutputs(s output.Streams) *outputs { return &outputs{data: s.Data(), messages: s.Err} }

// foundAt is a finding of objects.
func foundAt(f track.Finding, fatal bool, ids ...kube.ID) track.Finding {
	f.Fatal, f.Objects = fatal, ids
	return f
}

// pull is a problem of an image that isn't there.
func pull() track.Finding {
	return track.Finding{
		Class:     class.ImagePullPermanent,
		Title:     "Image can't be pulled",
		Message:   `failed to resolve reference "registry.example/web:1.9.9": not found`,
		Container: "web", Image: "registry.example/web:1.9.9", Attempts: 2, Limit: 2,
		Pods: []string{"web-6d8f-k2x9n", "web-6d8f-zz1p4"}, PodCount: 3, PodTotal: 3, Nodes: []string{"node-1", "node-7"},
		Events: []finding.Event{
			{Type: "Warning", Reason: "Failed", Message: "Error: ErrImagePull", Object: "Pod/web-6d8f-k2x9n", Count: 2},
			{Type: "Warning", Reason: "Failed", Message: "Error: ErrImagePull", Object: "Pod/web-6d8f-zz1p4", Count: 1},
			{Type: "Warning", Reason: "Failed", Message: `failed to resolve reference "registry.example/web:1.9.9": not found`, Object: "Pod/web-6d8f-zz1p4", Count: 1},
		},
	}
}
