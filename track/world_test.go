package track_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/reference"
	"sigs.k8s.io/yaml"

	"deployer/internal/kube"
	"deployer/internal/kubetest"
	"deployer/track"
	"deployer/track/class"
)

// world is one namespace of the test cluster and one tracker's connection.
type world struct {
	*testing.T
	c       *kubetest.Cluster
	ns      string
	admin   *kube.Cluster
	cluster *kube.Cluster // of the tracker
	agent   string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return loneWorld(t)
}

// loneWorld is for tests that would disturb others.
func loneWorld(t *testing.T) *world {
	t.Helper()
	c := kubetest.Start(t)
	w := &world{T: t, c: c, ns: c.Namespace(t)}
	w.agent = "track-" + w.ns
	config := c.Config()
	config.WarningHandler = rest.NoWarnings{}
	w.admin = kube.New(config, w.ns)
	w.cluster = w.connect(c.Config())
	return w
}

// as lets the tracker work as a user.
func (w *world) as(u *kubetest.User) {
	w.cluster = w.connect(u.Config())
}

// connect makes a tracker's connection. It knows the cluster's kinds already,
// as that of a release does after its applies.
func (w *world) connect(config *rest.Config) *kube.Cluster {
	w.Helper()
	config.UserAgent = w.agent
	cluster := kube.New(config, w.ns)
	if _, err := cluster.ServerInfo(w.Context()); err != nil {
		w.Fatal(err)
	}
	return cluster
}

func parse(t testing.TB, manifest string) *unstructured.Unstructured {
	t.Helper()
	var obj unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(manifest), &obj.Object); err != nil {
		t.Fatalf("parsing %s: %v", manifest, err)
	}
	data, err := yaml.YAMLToJSON([]byte(manifest))
	if err == nil {
		err = obj.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatalf("parsing %s: %v", manifest, err)
	}
	return &obj
}

func (w *world) client(gvk schema.GroupVersionKind) dynamic.ResourceInterface {
	w.Helper()
	mapping, err := w.admin.Mapping(w.Context(), gvk, false)
	if err != nil {
		w.Fatal(err)
	}
	return w.admin.ResourceClient(mapping, w.ns)
}

// apply does what a release does, and gives what it would give the tracker.
func (w *world) apply(manifest string) track.Target {
	w.Helper()
	obj := parse(w, manifest)
	client := w.client(obj.GroupVersionKind())
	before, err := client.Get(w.Context(), obj.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		before, err = nil, nil
	}
	if err != nil {
		w.Fatal(err)
	}
	after, err := client.Apply(w.Context(), obj.GetName(), obj, metav1.ApplyOptions{FieldManager: "deployer", Force: true})
	if err != nil {
		w.Fatalf("applying %s: %v", obj.GetName(), err)
	}
	if after.GetNamespace() == "" && before == nil { // it would outlive the test
		w.Cleanup(func() { _ = client.Delete(context.Background(), obj.GetName(), metav1.DeleteOptions{}) })
	}
	return track.Target{ID: kube.IDOf(after), GVK: after.GroupVersionKind(), Baseline: after, Previous: before,
		Changed: before == nil || before.GetResourceVersion() != after.GetResourceVersion()}
}

// outcome is what a Wait gave.
type outcome struct {
	*world
	err     error
	reports []track.Event
	took    time.Duration
}

// patience is a limit that no test reaches if all goes well.
const patience = 20 * time.Second

// wait waits for targets. A limit of at least patience gets the slack of a busy machine on top.
func (w *world) wait(opts track.Options, limit time.Duration, targets ...track.Target) *outcome {
	w.Helper()
	return w.waitWith(opts, limit, nil, targets...)
}

func (w *world) waitWith(opts track.Options, limit time.Duration, onEvent func(track.Event), targets ...track.Target) *outcome {
	w.Helper()
	if limit >= patience {
		limit += slack
	}
	ctx, cancel := context.WithTimeout(w.Context(), limit)
	defer cancel()
	out := &outcome{world: w}
	start := time.Now()
	out.err = track.New(w.cluster, opts).Wait(ctx, targets, func(r track.Event) {
		out.reports = append(out.reports, r)
		if onEvent != nil {
			onEvent(r)
		}
	})
	out.took = time.Since(start)
	return out
}

func (o *outcome) story() string {
	var b strings.Builder
	for _, r := range o.reports {
		fmt.Fprintf(&b, "\n  %s %s %s %q %d/%d", r.Kind, r.Status.ID, r.Status.State, r.Status.Message, r.Status.Done, r.Status.Total)
		if r.Status.Finding != nil {
			fmt.Fprintf(&b, " [%s %d/%d]", r.Status.Finding.Class, r.Status.Finding.Attempts, r.Status.Finding.Limit)
		}
		if r.Log != nil {
			fmt.Fprintf(&b, " log %s/%s: %s", r.Log.Pod, r.Log.Container, r.Log.Text)
		}
		if r.Seen != nil {
			fmt.Fprintf(&b, " event %s: %s", r.Seen.Reason, r.Seen.Message)
		}
		b.WriteString(" " + r.Text)
	}
	return b.String()
}

// slack is what a busy machine may add to what a wait takes.
const slack = 40 * time.Second

func (o *outcome) ready(within time.Duration) *outcome {
	o.Helper()
	if o.err != nil {
		o.Fatalf("Wait = %v, want ready; it saw %s", o.err, o.story())
	}
	if o.took > within+slack {
		o.Errorf("Wait took %s, want %s at most; it saw %s", o.took, within, o.story())
	}
	return o
}

// failed wants one cause of a class, between two times.
func (o *outcome) failed(want class.Class, from, to time.Duration) track.Finding {
	o.Helper()
	var failure *track.FailedError
	if !errors.As(o.err, &failure) {
		o.Fatalf("Wait = %v after %s, want a failure by %s; it saw %s", o.err, o.took, want, o.story())
	}
	cause := failure.Causes[0]
	if cause.Class != want || !cause.Fatal {
		o.Fatalf("cause = %s (fatal %t), want %s: %v; it saw %s", cause.Class, cause.Fatal, want, o.err, o.story())
	}
	if took := failure.Waited; took < from || took > to+slack {
		o.Errorf("Wait failed after %s, want between %s and %s; it saw %s", took, from, to, o.story())
	}
	return cause
}

func (o *outcome) state(id kube.ID) track.Status {
	var last track.Status
	for _, r := range o.reports {
		if r.Status.ID == id && r.Status.State != "" {
			last = r.Status
		}
	}
	return last
}

func (o *outcome) warned(text string) bool {
	for _, r := range o.reports {
		if r.Kind == track.Warned && strings.Contains(r.Text, text) {
			return true
		}
	}
	return false
}

// requests are those of the tracker, without the discovery of connect.
func (w *world) requests(who string) []string {
	w.Helper()
	var out []string
	for _, e := range w.c.Audit(w, who) {
		if strings.Contains(e.URI, "/namespaces/") || strings.Contains(e.URI, "watch=") {
			out = append(out, e.String())
		}
	}
	return out
}

// workload writes a workload of a kind with a script for its pods.
func workload(kind, name string, replicas int, script kubetest.Script, more string) string {
	template := ""
	if script != nil {
		template = "annotations: {" + kubetest.StepsAnnotation + ": '" + strings.ReplaceAll(script.String(), "'", "''") + "'}"
	}
	spec := ""
	if kind != "DaemonSet" {
		spec = fmt.Sprintf("replicas: %d", replicas)
	}
	if kind == "StatefulSet" {
		spec += "\n  serviceName: " + name
	}
	out := fmt.Sprintf(`
apiVersion: apps/v1
kind: %s
metadata:
  name: %s
  labels: {app.kubernetes.io/managed-by: Helm}
spec:
  %s
  selector: {matchLabels: {app: %s}}
  template:
    metadata:
      labels: {app: %s}
      %s
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: app, image: "r/x:1"}]
`, kind, name, spec, name, name, template)
	return out + more
}

// postEvent creates an Event about a stored object, as a kubelet's warning unless it says otherwise: simulated nodes write
// none.
func (w *world) postEvent(about runtime.Object, event corev1.Event) {
	w.Helper()
	ref, err := reference.GetReference(scheme.Scheme, about)
	if err != nil {
		w.Fatalf("an event about %T: %v", about, err)
	}
	event.GenerateName, event.Namespace = ref.Name+".", cmp.Or(ref.Namespace, metav1.NamespaceDefault)
	event.InvolvedObject = *ref
	event.Type, event.Count = cmp.Or(event.Type, corev1.EventTypeWarning), max(event.Count, 1)
	event.Source.Component = cmp.Or(event.Source.Component, "kubelet")
	event.ReportingController = event.Source.Component
	event.FirstTimestamp = metav1.Now()
	event.LastTimestamp = event.FirstTimestamp
	if _, err := w.c.Client().CoreV1().Events(event.Namespace).Create(w.Context(), &event, metav1.CreateOptions{}); err != nil {
		w.Fatalf("creating an Event about %s/%s/%s: %v", ref.Kind, ref.Namespace, ref.Name, err)
	}
}

func job(name string, script kubetest.Script, logs string, more string) string {
	annotations := kubetest.LogsAnnotation + ": '" + logs + "'"
	if script != nil {
		annotations += ", " + kubetest.StepsAnnotation + ": '" + script.String() + "'"
	}
	return fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: %s}
spec:
  template:
    metadata: {annotations: {%s}}
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 0
      containers: [{name: app, image: "r/x:1"}]
%s`, name, annotations, more)
}
