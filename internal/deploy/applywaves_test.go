package deploy_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"deployer/apply"
	"deployer/chart"
	"deployer/internal/deploy"
	"deployer/internal/kube"
	"deployer/internal/kubetest"
	"deployer/track"
)

// written makes a chart of one template.
func (s *site) written(text string) *chart.Chart {
	s.Helper()
	dir := s.TempDir()
	s.must(os.MkdirAll(filepath.Join(dir, "templates"), 0o755))
	s.must(os.WriteFile(filepath.Join(dir, "Chart.yaml"), []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n"), 0o600))
	s.must(os.WriteFile(filepath.Join(dir, "templates", "all.yaml"), []byte(text), 0o600))
	c, err := chart.Load(s.Context(), dir, chart.LoadOptions{})
	s.must(err)
	return c
}

// run deploys a chart of one template and tells of what happens.
func (s *site) run(text string, observe deploy.EventHandler) error {
	s.Helper()
	op, err := s.d.Upgrade(s.Context(), deploy.UpgradeRequest{Name: "web", Chart: s.written(text), Install: deploy.InstallIfMissing})
	if err != nil {
		return err
	}
	return s.observed(op, observe)
}

func (s *site) observed(op *deploy.Operation, observe deploy.EventHandler) error {
	s.Helper()
	decided := func(context.Context, *deploy.Deployer) (*deploy.Operation, error) { return op, nil }
	return s.d.Do(s.Context(), op.Release, decided, deploy.DoOptions{LockTimeout: time.Minute, OnEvent: observe}).Err
}

// config is a ConfigMap with annotations, given as "key: value".
func config(name string, annotations ...string) string {
	return fmt.Sprintf("\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s%s}\n", name, annotated(annotations))
}

func annotated(annotations []string) string {
	if len(annotations) == 0 {
		return ""
	}
	return ", annotations: {" + strings.Join(annotations, ", ") + "}"
}

// workload is a Deployment whose pod follows a script.
func workload(name string, script kubetest.Script, annotations ...string) string {
	return fmt.Sprintf(`
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s%[2]s}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata:
      labels: {app: %[1]s}
      annotations: {sim.deployer/steps: '%[3]s'}
    spec: {containers: [{name: app, image: "r/x:1"}]}
`, name, annotated(annotations), script)
}

func job(name string, script kubetest.Script, annotations ...string) string {
	return fmt.Sprintf(`
---
apiVersion: batch/v1
kind: Job
metadata: {name: %[1]s%[2]s}
spec:
  template:
    metadata:
      annotations: {sim.deployer/steps: '%[3]s'}
    spec: {restartPolicy: Never, containers: [{name: app, image: "r/x:1"}]}
`, name, annotated(annotations), script)
}

// diary notes in which order objects are applied, and what was ready at that
// moment.
type diary struct {
	s     *site
	order []string
	steps []string
	ready map[string][]string // by object: the Deployments and Jobs that were ready when it had been applied
}

func (d *diary) observe(e deploy.Event) {
	switch e.Kind {
	case deploy.StepBegan:
		d.steps = append(d.steps, string(e.Step))
	case deploy.Applied:
		name := e.Change.ID.Kind + "/" + e.Change.ID.Name
		d.order = append(d.order, name)
		d.ready[name] = d.s.ready()
	}
}

func (s *site) diary() *diary { return &diary{s: s, ready: map[string][]string{}} }

func (s *site) ready() []string {
	var out []string
	deployments, err := s.cluster.Client().AppsV1().Deployments(s.ns).List(s.Context(), metav1.ListOptions{})
	s.must(err)
	for _, d := range deployments.Items {
		if isReady(&d) {
			out = append(out, "Deployment/"+d.Name)
		}
	}
	jobs, err := s.cluster.Client().BatchV1().Jobs(s.ns).List(s.Context(), metav1.ListOptions{})
	s.must(err)
	for _, j := range jobs.Items {
		if j.Status.CompletionTime != nil {
			out = append(out, "Job/"+j.Name)
		}
	}
	return out
}

func isReady(d *appsv1.Deployment) bool {
	return d.Status.ReadyReplicas == *d.Spec.Replicas && d.Status.ObservedGeneration == d.Generation
}

// An object is applied when what it depends on is ready, whatever their kinds, also without --wait.
func TestDependentsWait(t *testing.T) {
	s := newSite(t)
	d := s.diary()
	slow := kubetest.ReadyAfter(2 * time.Second)
	s.must(s.run(workload("db", slow)+
		config("late", "deployer.io/depends-on: deployment/db")+
		job("migrate", kubetest.Exits(time.Second, 0), "deployer.io/depends-on: deploy/db")+
		workload("app", kubetest.ReadyAfter(0), `deployer.io/depends-on: "job.batch/migrate configmap/late=present"`)+
		workload("other", slow, "deployer.io/depends-on: deployment/db=present")+
		config("early"), d.observe))
	for name, want := range map[string]string{"ConfigMap/late": "Deployment/db", "Job/migrate": "Deployment/db", "Deployment/app": "Job/migrate"} {
		if !slices.Contains(d.ready[name], want) {
			t.Errorf("%s was applied when only %v was ready, not %s", name, d.ready[name], want)
		}
	}
	if got := strings.Join(d.order[:3], " "); got != "ConfigMap/early Deployment/db Deployment/other" {
		t.Errorf("what needs to see nothing ready had to wait: %v", d.order)
	}
	if got := strings.Join(d.steps, " "); got != "apply wait apply wait apply" {
		t.Errorf("steps: %s", got)
	}

	// What stays as it is waits for nothing.
	op, err := s.d.Upgrade(t.Context(), deploy.UpgradeRequest{Name: "web", Chart: s.written(workload("db", kubetest.NeverReady()) +
		config("late", "deployer.io/depends-on: deployment/db")), Install: deploy.InstallIfMissing})
	s.must(err)
	d = s.diary()
	s.must(s.observed(op, d.observe))
	if slices.Contains(d.steps, "wait") {
		t.Errorf("steps: %v", d.steps)
	}
}

// A custom resource of another version than the stored one waits for what
// converts it, where that comes with the release, and a release can mend what
// converts its objects.
func TestConvertedWaitForTheirConverter(t *testing.T) {
	s := newSite(t)
	name := "foos." + s.ns + ".example.com"
	s.Cleanup(func() {
		_ = s.cluster.Dynamic().Resource(definitions).Delete(context.WithoutCancel(s.Context()), name, metav1.DeleteOptions{})
	})
	cert, bundle := kubetest.Certificate(t, "hook."+s.ns+".svc")
	var broken atomic.Bool
	server := kubetest.Converter(t, cert, func() bool { // the API server also asks when the test is over
		hook, err := s.cluster.Client().AppsV1().Deployments(s.ns).Get(s.Context(), "hook", metav1.GetOptions{})
		return err == nil && hook.Status.ReadyReplicas > 0 && (!broken.Load() || hook.Generation > 1 && isReady(hook))
	})
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	s.must(err)
	rest := fmt.Sprintf(`
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s}
spec:
  group: %[2]s.example.com
  scope: Namespaced
  names: {plural: foos, kind: Foo}
  versions:
  - {name: v1, served: true, storage: true, schema: &any {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v2, served: true, storage: false, schema: *any}
  conversion:
    strategy: Webhook
    webhook: {conversionReviewVersions: [v1], clientConfig: {caBundle: %[3]s, service: {namespace: %[2]s, name: hook, port: %[4]s}}}
---
apiVersion: v1
kind: Service
metadata: {name: hook}
spec: {type: ExternalName, externalName: localhost, selector: {app: hook}}
`, name, s.ns, bundle, port)
	foo := func(version, name, value string) string {
		return fmt.Sprintf("\n---\napiVersion: %s.example.com/%s\nkind: Foo\nmetadata: {name: %s}\nspec: {size: %q}\n", s.ns, version, name, value)
	}

	d := s.diary()
	s.must(s.run(rest+workload("hook", kubetest.ReadyAfter(2*time.Second))+foo("v2", "new", "1")+foo("v1", "stored", "1"), d.observe))
	if want := "Deployment/hook"; !slices.Contains(d.ready["Foo/new"], want) || slices.Contains(d.ready["Foo/stored"], want) {
		t.Errorf("ready when an object was applied: %v; want the Deployment for the converted one only", d.ready)
	}

	broken.Store(true) // until its next revision runs
	s.must(s.run(rest+workload("hook", kubetest.ReadyAfter(time.Second))+foo("v2", "new", "2")+foo("v2", "other", "2")+foo("v1", "stored", "2"), nil))
}

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// A weight orders across kinds; each waits until all of a lower one are ready.
func TestWeights(t *testing.T) {
	s := newSite(t)
	d := s.diary()
	s.must(s.run(workload("b", kubetest.ReadyAfter(2*time.Second))+
		config("z", `deployer.io/weight: "10"`)+
		job("first", kubetest.Exits(time.Second, 0), `werf.io/weight: "-5"`)+
		config("a"), d.observe))
	if got := strings.Join(d.order, " "); got != "Job/first ConfigMap/a Deployment/b ConfigMap/z" {
		t.Errorf("order: %s", got)
	}
	if !slices.Contains(d.ready["ConfigMap/a"], "Job/first") || !slices.Contains(d.ready["ConfigMap/z"], "Deployment/b") {
		t.Errorf("ready: %v", d.ready)
	}
}

// An object whose dependency doesn't become ready isn't changed.
func TestDependentsOfAFailureAreNotApplied(t *testing.T) {
	s := newSite(t)
	s.d.Settings.Timeout = 4 * time.Second
	err := s.run(workload("db", kubetest.NeverReady())+config("late", "deployer.io/depends-on: deployment/db"), nil)
	var late *track.TimeoutError
	if !errors.As(err, &late) || !strings.Contains(err.Error(), "Deployment/"+s.ns+"/db") {
		t.Errorf("got %v", err)
	}
	if s.exists("late") {
		t.Error("applied although what it depends on isn't ready")
	}
}

// What somebody else makes is waited for, also if it isn't there yet.
func TestOutsideDependencies(t *testing.T) {
	t.Parallel()
	for _, how := range []string{
		"deployer.io/external-dependencies: secret/made=present",
		"made.external-dependency.werf.io/resource: secret/made",
	} {
		t.Run(how, func(t *testing.T) {
			s := newSite(t)
			var once sync.Once
			d := s.diary()
			s.must(s.run(config("app", how)+config("other"), func(e deploy.Event) {
				d.observe(e)
				if e.Status.ID.Name == "made" {
					once.Do(func() {
						if s.exists("app") || !s.exists("other") {
							t.Errorf("order: %v", d.order)
						}
						_, err := s.cluster.Client().CoreV1().Secrets(s.ns).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "made"}}, metav1.CreateOptions{})
						s.must(err)
					})
				}
			}))
			if got := strings.Join(d.order, " "); got != "ConfigMap/other ConfigMap/app" {
				t.Errorf("order: %s", got)
			}
		})
	}
	t.Run("in vain", func(t *testing.T) {
		s := newSite(t)
		s.d.Settings.Timeout = 4 * time.Second
		err := s.run(config("app", "deployer.io/external-dependencies: secret/made"), nil)
		if err == nil || !strings.Contains(err.Error(), "Secret/"+s.ns+"/made: it is not there yet") || s.exists("app") {
			t.Errorf("got %v; applied %v", err, s.exists("app"))
		}
	})
}

// An uninstall goes the other way round: what an object needed goes after it.
func TestUninstallGoesBackwards(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, base, user string }{
		{"depends on", config("base"), config("user", "deployer.io/depends-on: configmap/base")},
		{"weight", config("base", `deployer.io/weight: "1"`), config("user", `deployer.io/weight: "2"`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t)
			s.d.Settings.Timeout = time.Minute
			connection := s.cluster.Config()
			connection.UserAgent = "uninstall-" + s.ns
			s.d = deploy.New(kube.New(connection, s.ns), s.ns, s.d.Settings)
			s.must(s.run(c.base+c.user, nil))
			s.annotate("user", `{"metadata":{"finalizers":["example.com/held"]}}`)
			op, err := s.d.Uninstall(t.Context(), deploy.UninstallRequest{Name: "web"})
			s.must(err)
			ended := make(chan error, 1)
			go func() { ended <- s.observed(op, nil) }()
			s.cluster.Eventually(t, time.Minute, "user to be deleted", func(ctx context.Context) error {
				user, err := s.cluster.Client().CoreV1().ConfigMaps(s.ns).Get(ctx, "user", metav1.GetOptions{})
				if err == nil && user.DeletionTimestamp == nil {
					err = errors.New("not yet")
				}
				return err
			})
			released := time.Now()
			_, err = s.cluster.Client().CoreV1().ConfigMaps(s.ns).Patch(t.Context(), "user", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			s.must(err)
			s.must(<-ended)
			if s.exists("base") || s.exists("user") {
				t.Error("not deleted")
			}
			for _, e := range s.cluster.Audit(t, connection.UserAgent) {
				if e.Verb == "delete" && e.Object.Name == "base" && e.Time.Before(released) {
					t.Errorf("base was deleted at %s, before user was gone, at %s at the earliest", e.Time, released)
				}
			}
		})
	}
}

// If an object can't be deleted, what it needs stays. Others are deleted without waiting for it.
func TestWhatIsStillNeededStays(t *testing.T) {
	s := newSite(t)
	s.must(s.run(config("base")+config("user", "deployer.io/depends-on: configmap/base")+
		config("first")+config("second", "deployer.io/depends-on: configmap/first")+config("third", "deployer.io/depends-on: configmap/second"), nil))
	s.annotate("user", `{"metadata":{"finalizers":["example.com/held"]}}`)
	s.d.Settings.Timeout = 4 * time.Second
	op, err := s.d.Uninstall(t.Context(), deploy.UninstallRequest{Name: "web"})
	s.must(err)
	var recorded []string
	err = s.observed(op, func(e deploy.Event) {
		if e.Kind == deploy.Recorded {
			recorded = append(recorded, e.Record.Info.Status.String())
		}
	})
	if want := []string{"uninstalling", "failed"}; !slices.Equal(recorded, want) {
		t.Errorf("recorded %q, want %q", recorded, want)
	}
	if err == nil || !strings.Contains(err.Error(), "deleting ConfigMap/"+s.ns+"/base: ConfigMap/"+s.ns+"/user must be deleted first and still exists") ||
		!strings.Contains(err.Error(), "finalizers example.com/held") {
		t.Errorf("got %v", err)
	}
	if !s.exists("base") {
		t.Error("base was deleted")
	}
	if s.exists("first") {
		t.Error("first is left")
	}
	s.annotate("user", `{"metadata":{"finalizers":null}}`)
}

// All mistakes in the order are reported together, before any change.
func TestOrdersThatCannotBe(t *testing.T) {
	s := newSite(t)
	err := s.run(config("a", "deployer.io/depends-on: configmap/b")+config("b", "deployer.io/depends-on: configmap/a")+
		config("c", "deployer.io/depends-on: secret/nowhere")+config("d", "deployer.io/depends-on: unicorn/u")+
		config("e", `deployer.io/weight: "five"`)+config("f", `deployer.io/weight: "5"`)+
		config("g", `deployer.io/weight: "1"`, "deployer.io/depends-on: configmap/f")+
		config("h", "deployer.io/depends-on: migrate")+
		config("i", "deployer.io/depends-on: configmap/hook")+
		config("hook", "helm.sh/hook: pre-install", "deployer.io/depends-on: configmap/a"), nil)
	var rejected *apply.RejectedError
	if !errors.As(err, &rejected) || len(rejected.Rejections) != 8 {
		t.Fatalf("got %v", err)
	}
	ns := "ConfigMap/" + s.ns
	for _, want := range []string{
		ns + "/a waits until " + ns + "/b is ready", ns + "/b waits until " + ns + "/a is ready",
		"deployer.io/depends-on: secret/nowhere: Secret/" + s.ns + "/nowhere is neither in the release nor in the cluster",
		"deployer.io/depends-on: unicorn/u: the cluster has no such kind",
		`deployer.io/weight: "five" is not a whole number`,
		ns + "/g waits until " + ns + "/f is ready", ns + "/f (weight 5) waits for all objects of a lower weight, including " + ns + "/g (weight 1)",
		`deployer.io/depends-on: "migrate" is not an object`,
		"deployer.io/depends-on: configmap/hook is a hook",
		"hooks run one after the other",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("lacks %q:\n%v", want, err)
		}
	}
	if history, err := s.d.Releases.History(t.Context(), "web"); err != nil || history.Latest() != nil {
		t.Errorf("recorded: %v, %v", history, err)
	}
	if s.exists("a") {
		t.Error("applied")
	}
}

// An object that is there and not the release's may be depended on.
func TestDependingOnWhatIsThere(t *testing.T) {
	s := newSite(t)
	d := s.diary()
	s.must(s.run(config("a", `deployer.io/depends-on: "configmap/kube-root-ca.crt ns/default=present serviceaccount/kube-system/default"`), d.observe))
	if got := strings.Join(d.steps, " "); got != "wait apply" || !s.exists("a") {
		t.Errorf("steps: %s", got)
	}
	// Nobody may be told to wait for what can't be looked at.
	u := s.cluster.User(t, s.ns, kubetest.Rule("", "*", "configmaps", "secrets"), kubetest.Rule("coordination.k8s.io", "*", "leases"))
	s.d = deploy.New(kube.New(u.Config(), s.ns), s.ns, s.d.Settings)
	err := s.run(config("a", "deployer.io/depends-on: sa/kube-system/default"), nil)
	if err == nil || !strings.Contains(err.Error(), "is not part of this release, and there is no permission to read it") || apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
}

// A part that is switched off is no mistake with Nelm.
func TestDependenciesOfNelmOnNothing(t *testing.T) {
	s := newSite(t)
	op, err := s.d.Upgrade(t.Context(), deploy.UpgradeRequest{Name: "web", Install: deploy.InstallIfMissing,
		Chart: s.written(config("a", `werf.io/deploy-dependency-db: "state=ready,kind=StatefulSet,name=db"`))})
	s.must(err)
	if len(op.Plan.Warnings) != 1 || !strings.Contains(op.Plan.Warnings[0].Text, "names no object of the release") {
		t.Errorf("warnings: %v", op.Plan.Warnings)
	}
}
