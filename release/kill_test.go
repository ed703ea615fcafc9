package release

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientretry "k8s.io/client-go/util/retry"
)

// dies calls kill at the n-th write, and answers no request from then on. The API server receives that
// write only with late.
func dies(n int32, late bool, kill func()) func(http.RoundTripper) http.RoundTripper {
	var writes atomic.Int32
	return func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			count := writes.Load()
			if r.Method != http.MethodGet {
				count = writes.Add(1)
			}
			if count < n {
				return next.RoundTrip(r)
			}
			if count == n && r.Method != http.MethodGet && late {
				if response, err := next.RoundTrip(r); err == nil {
					response.Body.Close()
				}
			}
			kill()
			return nil, errors.New("test: killed")
		})
	}
}

// wholeRun does everything that a run writes, until it is killed. work is what it does between
// its first and its second write of the record.
func wholeRun(ctx context.Context, t *testing.T, store *Store, rec *Record, work func()) error {
	l, err := store.Lock(ctx, rec.Name, LockOptions{Operation: "to die", Warn: func(string) {}})
	if err != nil {
		return err
	}
	h, _, err := l.Recover(ctx)
	if err != nil {
		return err
	}
	rec.Version = h.Next()
	if err := l.Begin(ctx, rec, h.Identity()); err != nil {
		return err
	}
	rec.Journal.Step = "main"
	work()
	if err := l.Save(ctx, rec); err != nil {
		return err
	}
	if err := l.Finish(ctx, rec, deployed, "done"); err != nil {
		return err
	}
	if err := trim(ctx, store, rec.Name, 2); err != nil {
		return err
	}
	return l.Unlock(ctx)
}

func TestKilledAtEachWrite(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const writes = 8 // lock, begin, save, finish, supersede and delete the journal, prune, unlock
	for n := int32(1); n <= writes; n++ {
		for _, late := range []bool{false, true} {
			name := fmt.Sprintf("web-%d-%v", n, late)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				run(t, s.store, name, deployed)
				run(t, s.store, name, deployed)
				ctx, kill := context.WithCancel(t.Context())
				defer kill()
				err := wholeRun(ctx, t, s.through(dies(n, late, kill)), sample(name, 0, pending), func() {})
				if ctx.Err() == nil {
					t.Fatalf("the run wasn't killed: %v", err)
				}
				s.bury(t, name)
				l := lock(t, s.store, name, LockOptions{})
				defer unlock(t, l)
				if _, _, err := l.Recover(t.Context()); err != nil {
					t.Fatalf("Recover: %v", err)
				}
				rec := begun(t, l)
				finish(t, l, rec, deployed)
				if err := trim(t.Context(), s.store, name, 10); err != nil {
					t.Error(err)
				}
				got := statuses(t, s.store, name)
				if strings.Count(got, "deployed") != 1 || !strings.HasSuffix(got, ":deployed") || strings.Contains(got, "pending") {
					t.Errorf("history after recovery: %s", got)
				}
			})
		}
	}
}

// bury makes the Lease of a run in this process look like that of a dead process. The last heartbeat of the
// run may still be under way.
func (s *site) bury(t *testing.T, name string) {
	t.Helper()
	if err := clientretry.RetryOnConflict(clientretry.DefaultBackoff, func() error {
		lease := s.lease(t, name)
		if lease == nil {
			return nil
		}
		lease.Annotations[annotationProcess] = string(formerProcess())
		_, err := s.Client().CoordinationV1().Leases(s.namespace).Update(t.Context(), lease, metav1.UpdateOptions{})
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
