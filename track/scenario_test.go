package track_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/internal/kubetest"
	"deployer/track"
	"deployer/track/class"
	"deployer/track/finding"
)

func TestNewDeploymentGetsReady(t *testing.T) {
	w := newWorld(t)
	web := w.apply(workload("Deployment", "web", 3, kubetest.ReadyAfter(time.Second), ""))
	o := w.wait(track.Options{}, 20*time.Second, web).ready(6 * time.Second)
	if got := o.state(web.ID); got.State != track.Ready || got.Done != 3 || got.Total != 3 {
		t.Errorf("last status = %+v, want ready 3 of 3", got)
	}
	if got := w.requests(w.agent); len(got) > 6 {
		t.Errorf("tracking made %d requests, want 6 at most: %s", len(got), strings.Join(got, "\n"))
	}
}

func TestNothingChangedCostsNothing(t *testing.T) {
	w := newWorld(t)
	manifest := workload("Deployment", "web", 2, nil, "")
	w.wait(track.Options{}, 20*time.Second, w.apply(manifest)).ready(6 * time.Second)
	again := w.apply(manifest)
	if again.Changed {
		t.Fatal("the second apply changed something")
	}
	before := len(w.requests(w.agent))
	w.wait(track.Options{}, 20*time.Second, again, w.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}")).ready(100 * time.Millisecond)
	if got := w.requests(w.agent)[before:]; len(got) > 0 {
		t.Errorf("tracking made requests: %s", strings.Join(got, "\n"))
	}
}

func TestEachKindOfWorkload(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t)
			w.wait(track.Options{}, 40*time.Second, w.apply(workload(kind, "web", 2, nil, ""))).ready(20 * time.Second)
			if kind != "ReplicaSet" {
				changed := strings.ReplaceAll(workload(kind, "web", 2, nil, ""), "r/x:1", "r/x:2")
				w.wait(track.Options{}, 40*time.Second, w.apply(changed)).ready(20 * time.Second)
			}
		})
	}
}

func TestImageThatDoesNotExist(t *testing.T) {
	w := newWorld(t)
	web := w.apply(workload("Deployment", "web", 3, kubetest.PullPermanent(), ""))
	worker := w.apply(workload("StatefulSet", "worker", 1, kubetest.PullPermanent(), ""))
	o := w.wait(track.Options{}, time.Minute, web, worker)
	cause := o.failed(class.ImagePullPermanent, 10*time.Second, 18*time.Second)
	if len(cause.Objects) != 2 {
		t.Errorf("objects = %v, want both", cause.Objects)
	}
	p := cause
	if p.Attempts < 2 || p.Image != "r/x:1" || p.Container != "app" || !strings.Contains(p.Message, "not found") || len(p.Nodes) == 0 {
		t.Errorf("problem = %+v", p)
	}
}

func TestOldRevisionStillServes(t *testing.T) {
	w := newWorld(t)
	w.wait(track.Options{}, 20*time.Second, w.apply(workload("Deployment", "web", 3, nil, ""))).ready(10 * time.Second)
	bad := w.apply(workload("Deployment", "web", 3, kubetest.Script{{Phase: "Pending", State: kubetest.Waiting("InvalidImageName", `Failed to apply default image tag "UPPER//bad"`)}}, ""))
	cause := w.wait(track.Options{}, 20*time.Second, bad).failed(class.InvalidImageName, 0, 8*time.Second)
	if r := cause.Rollout; r == nil || r.OldServing != 3 {
		t.Errorf("rollout = %+v, want 3 old pods serving", cause.Rollout)
	}
}

func TestCrashLoop(t *testing.T) {
	w := newWorld(t)
	script := workload("Deployment", "api", 2, kubetest.Crash(), "")
	script = strings.Replace(script, "annotations: {", `annotations: {`+kubetest.LogsPreviousAnnotation+`: "connecting\nFATAL: no route to host", `, 1)
	cause := w.wait(track.Options{}, time.Minute, w.apply(script)).failed(class.CrashLoop, 10*time.Second, 20*time.Second)
	p := cause
	if p.Attempts != 3 || p.Limit != 3 || p.ExitCode == nil || *p.ExitCode != 1 {
		t.Errorf("problem = %+v", p)
	}
	if len(p.Logs) == 0 || !p.Logs[0].Previous || !strings.Contains(strings.Join(p.Logs[0].Lines, "\n"), "no route to host") {
		t.Errorf("logs = %+v, want the previous run's", p.Logs)
	}
}

func TestMissingSecret(t *testing.T) {
	w := newWorld(t)
	script := kubetest.Script{{After: time.Second, Phase: "Pending", State: kubetest.Waiting("CreateContainerConfigError", `secret "db" not found`)}}
	cause := w.wait(track.Options{}, time.Minute, w.apply(workload("Deployment", "web", 1, script, ""))).
		failed(class.ConfigError, 9*time.Second, 16*time.Second)
	if n := cause.Missing; n == nil || *n != (finding.Missing{Kind: "Secret", Name: "db"}) {
		t.Errorf("needs = %+v, want the Secret", n)
	}
}

func TestPodSecurity(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet", "Job"} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t)
			restrict(w)
			manifest := workload(kind, "web", 2, nil, "")
			if kind == "Job" {
				manifest = job("web", nil, "", "")
			}
			w.wait(track.Options{}, time.Minute, w.apply(manifest)).failed(class.PodSecurity, 4*time.Second, 14*time.Second)
		})
	}
}

func restrict(w *world) {
	w.Helper()
	w.apply("{apiVersion: v1, kind: Namespace, metadata: {name: " + w.ns + ", labels: {pod-security.kubernetes.io/enforce: restricted}}}")
}

func TestProgressDeadline(t *testing.T) {
	w := newWorld(t)
	web := w.apply(workload("Deployment", "web", 1, kubetest.NeverReady(), "  progressDeadlineSeconds: 10\n"))
	w.wait(track.Options{}, time.Minute, web).failed(class.ProgressDeadline, 9*time.Second, 16*time.Second)
}

func TestScaleWithoutProgress(t *testing.T) {
	w := newWorld(t)
	manifest := workload("Deployment", "web", 1, nil, "")
	w.wait(track.Options{}, 20*time.Second, w.apply(manifest)).ready(10 * time.Second)
	quota(w, "pods: 1")
	scaled := strings.Replace(manifest, "replicas: 1", "replicas: 3", 1)
	scaled = strings.Replace(scaled, "labels: {app.kub", `annotations: {deployer.io/no-progress-timeout: 8s}`+"\n  labels: {app.kub", 1)
	o := w.wait(track.Options{}, time.Minute, w.apply(scaled))
	cause := o.failed(class.NoProgress, 7*time.Second, 14*time.Second)
	if !strings.Contains(cause.Message, "quota") {
		t.Errorf("message = %q, want the quota in it", cause.Message)
	}
}

func quota(w *world, hard string) {
	w.Helper()
	w.apply("{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {" + hard + "}}}")
	w.c.Eventually(w.T, time.Minute, "the quota to count", func(ctx context.Context) error {
		q, err := w.c.Client().CoreV1().ResourceQuotas(w.ns).Get(ctx, "q", metav1.GetOptions{})
		if err == nil && len(q.Status.Used) == 0 {
			err = errors.New("it has not counted yet")
		}
		return err
	})
}

func TestPartitionAndOnDelete(t *testing.T) {
	t.Parallel()
	for name, strategy := range map[string]string{
		"partition": "  updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 2}}\n",
		"on delete": "  updateStrategy: {type: OnDelete}\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			manifest := workload("StatefulSet", "pg", 3, nil, strategy)
			w.wait(track.Options{}, 40*time.Second, w.apply(manifest)).ready(20 * time.Second)
			changed := w.apply(strings.ReplaceAll(manifest, "r/x:1", "r/x:2"))
			o := w.wait(track.Options{}, 40*time.Second, changed).ready(10 * time.Second)
			if notes := o.state(changed.ID).Notes; len(notes) == 0 || !strings.Contains(notes[0], "old revision") {
				t.Errorf("notes = %q, want one about the old revision", notes)
			}
		})
	}
}

func TestJobs(t *testing.T) {
	t.Parallel()
	t.Run("complete, with its log", func(t *testing.T) {
		w := newWorld(t)
		o := w.wait(track.Options{}, 30*time.Second, w.apply(job("migrate", kubetest.Exits(2*time.Second, 0), "0042_orders.sql", ""))).ready(15 * time.Second)
		found := false
		for _, r := range o.reports {
			found = found || r.Kind == track.LogWritten && r.Log.Text == "0042_orders.sql"
		}
		if !found {
			t.Errorf("no line of the log was reported; it saw %s", o.story())
		}
	})
	t.Run("complete at once, with its log", func(t *testing.T) {
		w := newWorld(t)
		o := w.wait(track.Options{}, 30*time.Second, w.apply(job("migrate", nil, "0042_orders.sql", ""))).ready(10 * time.Second)
		if !strings.Contains(o.story(), "0042_orders.sql") {
			t.Errorf("no line of the log was reported; it saw %s", o.story())
		}
	})
	t.Run("failed", func(t *testing.T) {
		w := newWorld(t)
		o := w.wait(track.Options{}, 30*time.Second, w.apply(job("migrate", kubetest.Exits(time.Second, 3), "boom", "  backoffLimit: 0\n")))
		cause := o.failed(class.JobFailed, 0, 15*time.Second)
		if len(cause.Logs) == 0 || strings.Join(cause.Logs[0].Lines, "") != "boom" {
			t.Errorf("logs = %+v; it saw %s", cause.Logs, o.story())
		}
	})
	t.Run("suspended", func(t *testing.T) {
		w := newWorld(t)
		w.wait(track.Options{}, 30*time.Second, w.apply(job("migrate", nil, "", "  suspend: true\n"))).ready(time.Second)
	})
}

func TestTimeoutTellsWhatIsMissing(t *testing.T) {
	w := newWorld(t)
	web := w.apply(workload("Deployment", "web", 1, kubetest.NeverReady(), ""))
	o := w.wait(track.Options{}, 15*time.Second, web, w.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}"))
	var late *track.TimeoutError
	if !errors.As(o.err, &late) || len(late.NotReady) != 1 || late.Total != 2 {
		t.Fatalf("Wait = %v, want a timeout with one object of two", o.err)
	}
	if !strings.Contains(o.err.Error(), "1 of 2 objects is not ready") {
		t.Errorf("text = %q", o.err)
	}
}

// TestTimeoutHasEvidence: what can never fail by itself is the reason when time
// is up, and comes with its log.
func TestTimeoutHasEvidence(t *testing.T) {
	w := newWorld(t)
	manifest := strings.Replace(workload("Deployment", "web", 1, kubetest.NeverReady(), ""), `image: "r/x:1"`,
		`image: "r/x:1", readinessProbe: {exec: {command: [probe]}, periodSeconds: 1, failureThreshold: 1}`, 1)
	manifest = strings.Replace(manifest, "annotations: {sim", "annotations: {"+kubetest.LogsAnnotation+": waiting for a licence, sim", 1)
	o := w.wait(track.Options{}, 19*time.Second, w.apply(manifest))
	var late *track.TimeoutError
	if !errors.As(o.err, &late) || len(late.Causes) != 1 || late.Causes[0].Class != class.ReadinessProbeFailed {
		t.Fatalf("Wait = %v, want a timeout with the probe as its cause; it saw %s", o.err, o.story())
	}
	if logs := late.Causes[0].Logs; len(logs) == 0 || strings.Join(logs[0].Lines, "") != "waiting for a licence" {
		t.Errorf("logs = %+v, want the container's", logs)
	}
}
