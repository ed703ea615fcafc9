package track_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/internal/kubetest"
	"deployer/track"
	"deployer/track/watch"
)

// TestAPIServerKilled kills the API server during the wait, or etcd behind it, and
// starts it again. Meanwhile one Deployment heals that would have failed by then.
// The tracker works as a user whose rights a starting server must first read.
func TestAPIServerKilled(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kill  func(*apiServer)
		start func(*apiServer) error
	}{
		"itself":  {(*apiServer).kill, func(s *apiServer) error { return s.start(t.Context()) }},
		"storage": {func(s *apiServer) { s.storage.close() }, func(s *apiServer) error { return s.storage.open() }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			server := startServer(t, w.c)
			user := w.c.User(t, w.ns, kubetest.Rule("apps", "get,list,watch", "deployments", "replicasets"),
				kubetest.Rule("", "get,list,watch", "pods", "events"))
			w.cluster = w.connect(server.config(user.Config()))
			o := w.waitThrough(func() { test.kill(server) }, func() error { return test.start(server) })
			o.ready(100 * time.Second)
			lost, regained := 0, 0
			for _, r := range o.reports {
				switch {
				case r.Kind == track.APILost:
					lost++
				case r.Kind == track.APIRegained:
					regained++
				case r.Kind == track.Warned:
					t.Errorf("warned of what passes: %s", r.Text)
				}
			}
			if lost == 0 || lost != regained {
				t.Errorf("the connection was lost %d times and regained %d times; it saw %s", lost, regained, o.story())
			}
		})
	}
}

// waitThrough waits for two Deployments. An outage begins when one of them has a
// problem, and ends when that is over.
func (w *world) waitThrough(begin func(), end func() error) *outcome {
	w.Helper()
	heals := kubetest.Script{
		{Phase: "Pending", State: kubetest.Waiting("CreateContainerConfigError", `secret "db" not found`)},
		{After: 16 * time.Second, Ready: true, State: kubetest.Running()},
	}
	targets := []track.Target{
		w.apply(workload("Deployment", "web", 1, heals, "")),
		w.apply(workload("Deployment", "slow", 2, kubetest.ReadyAfter(25*time.Second), "")),
	}
	var once sync.Once
	var ended sync.WaitGroup
	defer ended.Wait()
	return w.waitWith(track.Options{}, 2*time.Minute, func(r track.Event) {
		if r.Kind != track.ProblemSeen {
			return
		}
		once.Do(func() {
			begin()
			ended.Go(func() {
				if err := w.availableOf("web"); err != nil {
					w.Error(err)
				}
				if err := end(); err != nil {
					w.Error(err)
				}
			})
		})
	}, targets...)
}

// availableOf returns when a Deployment has an available pod, by the cluster's
// own API server.
func (w *world) availableOf(name string) error {
	ctx, stop := context.WithTimeout(w.Context(), time.Minute)
	defer stop()
	changes, err := w.c.Client().AppsV1().Deployments(w.ns).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return err
	}
	defer changes.Stop()
	for event := range changes.ResultChan() {
		if d, ok := event.Object.(*appsv1.Deployment); ok && d.Status.AvailableReplicas > 0 {
			return nil
		}
	}
	return errors.New("Deployment " + name + " has no available pod")
}

// TestLogIsReadOnAfterACut: what a hook writes while the API server is away, and
// after that, is shown once.
func TestLogIsReadOnAfterACut(t *testing.T) {
	w := newWorld(t)
	var off atomic.Bool
	config := w.c.Config()
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return cut{rt, &off} })
	w.cluster = w.connect(config)
	script := kubetest.Script{{State: kubetest.Running()}, {After: 12 * time.Second, Phase: "Succeeded", State: kubetest.Terminated(0, "Completed")}}
	hook := w.apply(job("migrate", script, "first", ""))
	hook.Until = track.UntilComplete
	var lines []string
	w.waitWith(track.Options{}, time.Minute, func(r track.Event) {
		if r.Log == nil {
			return
		}
		lines = append(lines, r.Log.Text)
		if r.Log.Text != "first" {
			return
		}
		off.Store(true)
		if err := w.write("second"); err != nil {
			t.Error(err)
		}
		time.AfterFunc(2*time.Second, func() { off.Store(false) })
	}, hook).ready(50 * time.Second)
	if got := strings.Join(lines, ","); got != "first,second" {
		t.Errorf("lines = %s, want first,second", got)
	}
}

// write adds a line to the log of the pods of the namespace.
func (w *world) write(line string) error {
	pods := w.c.Client().CoreV1().Pods(w.ns)
	found, err := pods.List(w.Context(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range found.Items {
		p := &found.Items[i]
		p.Annotations[kubetest.LogsAnnotation] += "\n" + line
		if _, err := pods.Update(w.Context(), p, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// TestForgottenVersion: an API server that has forgotten where a watch wants to
// begin is asked for what is there now.
func TestForgottenVersion(t *testing.T) {
	w := newWorld(t)
	web := w.apply(workload("Deployment", "web", 1, kubetest.ReadyAfter(5*time.Second), ""))
	config := w.c.Config()
	var asked atomic.Int32
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		return forgetful{rt, web.Baseline.GetResourceVersion(), &asked}
	})
	w.cluster = w.connect(config)
	o := w.wait(track.Options{}, 60*time.Second, web).ready(50 * time.Second)
	if asked.Load() != 1 {
		t.Errorf("it asked %d times for the forgotten version, want once", asked.Load())
	}
	for _, r := range o.reports {
		if r.Kind == track.APILost || r.Kind == track.Warned {
			t.Errorf("it was said to be an outage: %s", o.story())
		}
	}
}

// forgetful is a transport on which a resource version is older than it is: the
// API server's watch caches don't go back to the cluster's first.
type forgetful struct {
	base    http.RoundTripper
	version string
	asked   *atomic.Int32
}

func (f forgetful) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	if query.Get("resourceVersion") == f.version {
		f.asked.Add(1)
		r = r.Clone(r.Context())
		query.Set("resourceVersion", "1")
		r.URL.RawQuery = query.Encode()
	}
	return f.base.RoundTrip(r)
}

// TestRefusalEndsAnOutage: an API server that refuses is there, also for what can be read
// no longer.
func TestRefusalEndsAnOutage(t *testing.T) {
	w := newWorld(t)
	settings := w.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}")
	config := w.c.User(t, w.ns).Config()
	var failed atomic.Bool
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return failsOnce{rt, "/configmaps/settings", &failed} })
	cluster := w.connect(config)
	mapping, err := cluster.Mapping(t.Context(), settings.GVK, false)
	if err != nil {
		t.Fatal(err)
	}
	client := cluster.ResourceClient(mapping, w.ns)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var kinds []watch.EventKind
	objects := watch.Objects{Source: watch.SourceOf(client), Client: client, Description: "configmaps", Names: []string{"settings"}, ReadLimit: rate.NewLimiter(10, 1)}
	watch.WatchWithFallback(ctx, objects, func(e watch.Event) { kinds = append(kinds, e.Kind) })
	want := []watch.EventKind{watch.FellBack, watch.Unreachable, watch.Reachable, watch.Denied}
	if !slices.Equal(kinds, want) {
		t.Errorf("events = %v, want %v", kinds, want)
	}
}

// TestUnservedIsNotGone: while an API server answers as if it didn't serve a kind that it lists, nobody
// knows whether what is to be deleted is there.
func TestUnservedIsNotGone(t *testing.T) {
	t.Parallel()
	for verbs, path := range map[string]string{"get,list,watch": "/configmaps", "get": "/configmaps/held"} {
		t.Run(verbs, func(t *testing.T) {
			w := newWorld(t)
			held := w.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: held, finalizers: [example.com/wait]}}")
			held.Until = track.UntilGone
			maps := w.c.Client().CoreV1().ConfigMaps(w.ns)
			if err := maps.Delete(t.Context(), "held", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			config := w.c.User(t, w.ns, kubetest.Rule("", verbs, "configmaps")).Config()
			var discoveries atomic.Int32
			config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return notServing{rt, path, &discoveries} })
			w.cluster = w.connect(config)
			discoveries.Store(0)
			released := false
			o := w.waitWith(track.Options{}, 30*time.Second, func(r track.Event) {
				if r.Kind != track.APIRegained {
					return
				}
				released = true
				_, err := maps.Patch(t.Context(), "held", "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
				if err != nil {
					t.Error(err)
				}
			}, held).ready(20 * time.Second)
			if !released {
				t.Errorf("it was taken for gone while it was there; the wait saw %s", o.story())
			}
		})
	}
}

// notServing is a transport on which a path isn't served until discovery was read twice.
type notServing struct {
	base        http.RoundTripper
	path        string
	discoveries *atomic.Int32
}

func (n notServing) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/apis" {
		n.discoveries.Add(1)
	}
	if strings.HasSuffix(r.URL.Path, n.path) && n.discoveries.Load() < 2 {
		return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{"Content-Type": {"text/plain"}},
			Body: io.NopCloser(strings.NewReader("404 page not found")), Request: r}, nil
	}
	return n.base.RoundTrip(r)
}

// failsOnce is a transport on which the first request for a path gets no answer.
type failsOnce struct {
	base   http.RoundTripper
	path   string
	failed *atomic.Bool
}

func (f failsOnce) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, f.path) && f.failed.CompareAndSwap(false, true) {
		return nil, errors.New("no route to host")
	}
	return f.base.RoundTrip(r)
}
