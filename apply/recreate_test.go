package apply_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"deployer/apply"
	"deployer/apply/decide"
)

var bg = context.Background()

// A Job whose template changed is a new Job.
func TestJobsAreRecreated(t *testing.T) {
	s := begin(t)
	const chart = `
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: c, image: "c:1"}]}
`
	s.deploy(chart)
	uid := s.get("batch/v1", "Job", "once").GetUID()
	s.expect(s.deploy(chart))
	next := strings.Replace(chart, "c:1", "c:2", 1)
	p := s.deploy(next)
	s.expect(p, "recreate Job/once")
	job := s.get("batch/v1", "Job", "once")
	if job.GetUID() == uid || at(job, "spec.template.spec.containers.c.image") != "c:2" {
		t.Errorf("not recreated: %v", job.Object["spec"])
	}
	s.expect(s.deploy(next))
}

// With permission to recreate, only what it can mend is recreated. TestImmutableKinds has what is told without.
func TestImmutableFields(t *testing.T) {
	s := begin(t)
	s.deploy(many)
	grown := strings.Replace(many, "storage: 1Gi}}}\n---\napiVersion: apps/v1\nkind: DaemonSet", "storage: 2Gi}}}\n---\napiVersion: apps/v1\nkind: DaemonSet", 1)
	var broken *apply.ImmutableError
	if err := s.refuse(grown); !errors.As(err, &broken) || !strings.Contains(broken.Hint(), "--allow-recreate") {
		t.Errorf("got %v", err)
	}
	s.opts.AllowRecreate = true
	err := s.refuse(strings.Replace(many, "kind: PersistentVolumeClaim\nmetadata: {name: disk}\nspec: {accessModes: [ReadWriteOnce]", "kind: PersistentVolumeClaim\nmetadata: {name: disk}\nspec: {accessModes: [ReadWriteMany]", 1))
	if !errors.As(err, &broken) {
		t.Errorf("got %v", err)
	}
	// A mistake never costs an object its life.
	err = s.refuse(strings.Replace(many, "{name: agent, image: agent:1}", "{name: agent, image: agent:1, imagePullPolicy: Sometimes}", 1))
	if errors.As(err, &broken) {
		t.Errorf("got %v", err)
	}
	t.Log(err)

	// A StatefulSet leaves its pods to the next one.
	s.eventually("the first pod", func() error {
		if s.get("v1", "Pod", "db-0") == nil {
			return errors.New("no pod")
		}
		return nil
	})
	pod := s.get("v1", "Pod", "db-0").GetUID()
	old := s.get("apps/v1", "StatefulSet", "db").GetUID()
	s.deploy(grown)
	if now := s.get("apps/v1", "StatefulSet", "db").GetUID(); now == old {
		t.Errorf("the StatefulSet is the same")
	}
	if p := s.get("v1", "Pod", "db-0"); p == nil || p.GetUID() != pod {
		t.Errorf("the pod was replaced")
	}
}

// Prevents that a plan leaves fields to others which a recreation takes from them: the new object has no managers but us.
func TestRecreatedFieldsAreNotLeftToOthers(t *testing.T) {
	s := begin(t)
	s.opts.Conflicts, s.opts.AllowRecreate = decide.YieldConflicts, true
	const chart = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: 0, selector: {matchLabels: {app: APP}}, template: {metadata: {labels: {app: APP}}, spec: {containers: [{name: c, image: one}]}}}"
	s.deploy(strings.ReplaceAll(chart, "APP", "a"))
	s.patch("apps/v1", "Deployment", "a", types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"two"}]}}}}`, "kubectl-set")
	p := s.deploy(strings.ReplaceAll(chart, "APP", "b"))
	image := at(s.get("apps/v1", "Deployment", "a"), "spec.template.spec.containers.c.image")
	for c := range p.Changes() {
		if c.Action != decide.Recreate || len(c.Conflicts) != 1 || c.Conflicts[0].Outcome != decide.OutcomeTaken || image != "one" {
			t.Errorf("%s: %v, and the image is %v", c.Action, c.Conflicts, image)
		}
	}
}

// Prevents that what somebody has made anew with other content, which can't be changed, stays although it may be recreated.
func TestConsentRecreatesWhatOthersHaveMade(t *testing.T) {
	s := begin(t)
	const chart = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\nimmutable: true\ndata: {a: b}"
	s.deploy(chart)
	other := s.get("v1", "ConfigMap", "x")
	maps := s.client("v1", "ConfigMap")
	if err := maps.Delete(bg, "x", deleteNow); err != nil {
		t.Fatal(err)
	}
	other.SetUID("")
	other.SetResourceVersion("")
	other.SetManagedFields(nil)
	other.Object["data"] = map[string]any{"a": "by hand"}
	if _, err := maps.Create(bg, other, metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil {
		t.Fatal(err)
	}
	var broken *apply.ImmutableError
	if err := s.refuse(chart); !errors.As(err, &broken) || !strings.Contains(broken.Hint(), "--allow-recreate") {
		t.Errorf("without consent: %v", err)
	}
	s.opts.AllowRecreate = true
	s.expect(s.deploy(chart), "recreate ConfigMap/x")
	if got := at(s.get("v1", "ConfigMap", "x"), "data.a"); got != "b" {
		t.Errorf("with consent, data.a is %v", got)
	}
}

// Recreate while the defaulted rollingUpdate is there, both ways.
func TestStrategySwitch(t *testing.T) {
	t.Parallel()
	for _, legacy := range []bool{true, false} {
		t.Run(fmt.Sprint("helm3=", legacy), func(t *testing.T) { strategySwitch(t, legacy) })
	}
}

func strategySwitch(t *testing.T, legacy bool) {
	{
		s := begin(t)
		recreate := strings.Replace(small, "spec:\n  selector: {matchLabels: {app: web}}", "spec:\n  strategy: {type: Recreate}\n  selector: {matchLabels: {app: web}}", 1)
		s.install(small, legacy)
		s.expect(s.deploy(recreate), "update Deployment/web")
		d := s.get("apps/v1", "Deployment", "web")
		if at(d, "spec.strategy.type") != "Recreate" || at(d, "spec.strategy.rollingUpdate") != nil || managers(d) != "helm/Apply" {
			t.Errorf("strategy %v, managers %s", at(d, "spec.strategy"), managers(d))
		}
		s.expect(s.deploy(recreate))
		s.expect(s.deploy(small), "update Deployment/web")
		if d := s.get("apps/v1", "Deployment", "web"); at(d, "spec.strategy.type") != "RollingUpdate" {
			t.Errorf("strategy %v", at(d, "spec.strategy"))
		}
	}
}

// An object on its way out that somebody holds is waited for a little, if it is to be different: it is made anew, or changed as it is.
func TestTerminatingObject(t *testing.T) {
	s := begin(t)
	s.deploy(small)
	s.patch("v1", "ConfigMap", "conf", "application/merge-patch+json", `{"metadata":{"finalizers":["example.com/wait"]}}`, "x")
	uid := s.get("v1", "ConfigMap", "conf").GetUID()
	if err := s.client("v1", "ConfigMap").Delete(bg, "conf", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.expect(s.plan(small))
	s.opts.GoneTimeout = time.Second
	s.expect(s.deploy(strings.Replace(small, `a: "1"`, `a: "3"`, 1)), "update ConfigMap/conf")
	if now := s.get("v1", "ConfigMap", "conf"); now.GetUID() != uid || at(now, "data.a") != "3" {
		t.Errorf("got %v", now)
	}
	s.opts.GoneTimeout = 0
	p := s.plan(strings.Replace(small, `a: "1"`, `a: "4"`, 1))
	s.expect(p, "update ConfigMap/conf")
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.run(p)
	}()
	s.patch("v1", "ConfigMap", "conf", "application/merge-patch+json", `{"metadata":{"finalizers":null}}`, "x")
	<-done
	if now := s.get("v1", "ConfigMap", "conf"); now == nil || now.GetUID() == uid || at(now, "data.a") != "4" {
		t.Errorf("got %v", now)
	}
}

// Prevents that two Jobs are at work at once, such as two migrations of one database: the pods of a running Job end before
// the Job that replaces it begins.
func TestJobsDontOverlap(t *testing.T) {
	s := begin(t)
	job := "apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate}\nspec: {template: {spec: {schedulerName: none, restartPolicy: Never, containers: [{name: c, image: one}]}}}"
	hook := strings.Replace(strings.Replace(job, "{name: migrate}", "{name: hook, annotations: {helm.sh/hook: pre-upgrade}}", 1), "name: migrate", "name: hook", 1)
	s.deploy(job)
	s.mustHook(hook)
	for _, name := range []string{"migrate", "hook"} {
		defer s.holdPodOf(name)()
	}
	s.opts.GoneTimeout = time.Second
	if _, err := s.tryRun(s.plan(strings.Replace(job, "one", "two", 1))); err == nil || !strings.Contains(err.Error(), "still exists after 1s") {
		t.Errorf("the Job was replaced beside the pod of the old one: %v", err)
	}
	if _, err := s.hook(strings.Replace(hook, "one", "two", 1)); err == nil || !strings.Contains(err.Error(), "still exists after 1s") {
		t.Errorf("the hook was replaced beside the pod of the old one: %v", err)
	}
}

// holdPodOf makes the pod of a Job outlast its deletion until release is called, as one that takes long to end does.
func (s *story) holdPodOf(job string) (release func()) {
	s.t.Helper()
	var pod string
	s.eventually("the pod of "+job, func() error {
		list, err := s.client("v1", "Pod").List(bg, metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name=" + job})
		if err != nil {
			return err
		}
		if len(list.Items) == 0 {
			return errors.New("no pod")
		}
		pod = list.Items[0].GetName()
		return nil
	})
	s.patch("v1", "Pod", pod, types.JSONPatchType, `[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/wait"}]`, "x")
	return func() { s.patch("v1", "Pod", pod, types.MergePatchType, `{"metadata":{"finalizers":null}}`, "x") }
}
