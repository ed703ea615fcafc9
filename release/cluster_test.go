package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"deployer/internal/kube"
	"deployer/internal/kubetest"
)

// A site is a namespace of a real cluster, for one test.
type site struct {
	*kubetest.Cluster
	namespace string
	store     *Store
}

func newSite(t *testing.T) *site {
	t.Helper()
	cluster := kubetest.Start(t)
	s := &site{Cluster: cluster, namespace: cluster.Namespace(t)}
	s.store = s.as(cluster.Config())
	return s
}

// as is the site's store for another client.
func (s *site) as(config *rest.Config) *Store {
	return NewStore(kube.New(config, s.namespace), s.namespace)
}

// through is the site's store with something between it and the server.
func (s *site) through(wrap func(http.RoundTripper) http.RoundTripper) *Store {
	config := s.Config()
	config.Wrap(wrap)
	return s.as(config)
}

// quick makes heartbeats that a test can wait for.
func quick(t *testing.T, opts LockOptions) LockOptions {
	opts.Duration, opts.Renew = 2*time.Second, 200*time.Millisecond
	if opts.Operation == "" {
		opts.Operation = "a test"
	}
	if opts.Warn == nil {
		opts.Warn = func(text string) { t.Errorf("unexpected warning: %s", text) }
	}
	return opts
}

func lock(t *testing.T, s *Store, name string, opts LockOptions) *Lock {
	t.Helper()
	l, err := s.Lock(t.Context(), name, quick(t, opts))
	if err != nil {
		t.Fatalf("Lock(%s): %v", name, err)
	}
	return l
}

func unlock(t *testing.T, l *Lock) {
	t.Helper()
	err := l.Unlock(t.Context())
	if err != nil && !errors.Is(err, context.DeadlineExceeded) { // on a machine that is too busy for Unlock's ten seconds, the Lease stays
		t.Errorf("Unlock(%s): %v", l.name, err)
	}
}

// begun begins the next revision.
func begun(t *testing.T, l *Lock, change ...func(*Record)) *Record {
	t.Helper()
	h, err := l.store.History(t.Context(), l.name)
	if err != nil {
		t.Fatal(err)
	}
	rec := sample(l.name, h.Next(), pending)
	for _, c := range change {
		c(rec)
	}
	if err := l.Begin(t.Context(), rec, h.Identity()); err != nil {
		t.Fatalf("Begin(%s): %v", l.name, err)
	}
	return rec
}

func finish(t *testing.T, l *Lock, rec *Record, status helmrelease.Status) {
	t.Helper()
	if err := l.Finish(t.Context(), rec, status, "it is "+status.String()); err != nil {
		t.Fatalf("Finish(%s v%d, %s): %v", rec.Name, rec.Version, status, err)
	}
}

// current is the identity of a release's history as it is now.
func current(t *testing.T, s *Store, name string) Identity {
	t.Helper()
	h, err := s.History(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return h.Identity()
}

// run is a whole run that ends with status.
func run(t *testing.T, s *Store, name string, status helmrelease.Status, change ...func(*Record)) *Record {
	t.Helper()
	l := lock(t, s, name, LockOptions{})
	defer unlock(t, l)
	rec := begun(t, l, change...)
	finish(t, l, rec, status)
	return rec
}

// statuses writes a history as "1:superseded 2:deployed".
func statuses(t *testing.T, s *Store, name string) string {
	t.Helper()
	h, err := s.History(t.Context(), name)
	if err != nil {
		t.Fatalf("History(%s): %v", name, err)
	}
	var out []string
	for _, r := range h.Revisions {
		out = append(out, fmt.Sprintf("%d:%s", r.Revision, r.Status))
	}
	return strings.Join(out, " ")
}

func wantStatuses(t *testing.T, s *Store, name, want string) {
	t.Helper()
	if got := statuses(t, s, name); got != want {
		t.Errorf("history of %s: %s\nwant %s", name, got, want)
	}
}

// secretsWith lists the names of the site's Secrets.
func (s *site) secretsWith(t *testing.T, selector string) []string {
	t.Helper()
	list, err := s.Client().CoreV1().Secrets(s.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, secret := range list.Items {
		out = append(out, secret.Name)
	}
	return out
}

// edit changes a Secret behind our back.
func (s *site) edit(t *testing.T, name string, change func(*corev1.Secret)) {
	t.Helper()
	secrets := s.Client().CoreV1().Secrets(s.namespace)
	secret, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	change(secret)
	if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// warnings collects what a run warns about.
type warnings struct {
	mu  sync.Mutex
	all []string
}

func (w *warnings) add(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, text)
}

func (w *warnings) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.all, "\n")
}

// A transport does something else than to send the request.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// losesAnswers sends the requests that match, and drops the answers to the
// first n of them.
func losesAnswers(n int32, lost *atomic.Int32, match func(*http.Request) bool) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			matches := match(r)
			response, err := next.RoundTrip(r)
			if err == nil && matches && lost.Add(1) <= n {
				response.Body.Close()
				return nil, fmt.Errorf("test: %w", io.ErrUnexpectedEOF)
			}
			return response, err
		})
	}
}

// traffic counts requests, and bytes of answers.
type traffic struct{ gets, lists, bytes atomic.Int64 }

func (c *traffic) wrap(next http.RoundTripper) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err != nil {
			return response, err
		}
		if strings.HasSuffix(r.URL.Path, "/secrets") {
			c.lists.Add(1)
		} else {
			c.gets.Add(1)
		}
		response.Body = &counted{response.Body, &c.bytes}
		return response, nil
	})
}

type counted struct {
	io.ReadCloser
	bytes *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

// waitDone waits until a context has ended, and gives why.
func waitDone(t *testing.T, ctx context.Context) error {
	t.Helper()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(30 * time.Second):
		t.Fatal("the lock's context didn't end")
		return nil
	}
}

// _ctx keeps closures short.
type _ctx = context.Context

func contextWithCancel(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}
