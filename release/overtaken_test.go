package release

import (
	"errors"
	"strings"
	"testing"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
)

// TestOvertaken fails if a run goes on, and ends as deployed, although another tool has recorded a
// later revision: `helm rollback` looks neither at the Lease nor at pending revisions.
func TestOvertaken(t *testing.T) {
	cases := []struct {
		name      string
		heartbeat time.Duration
		end       func(*testing.T, *Lock, *Record) error
	}{
		{"between steps", time.Hour, func(t *testing.T, l *Lock, rec *Record) error { return l.Save(t.Context(), rec) }},
		{"during a step", 100 * time.Millisecond, func(t *testing.T, l *Lock, _ *Record) error { return waitDone(t, l.Context()) }},
		{"before its end is recorded", time.Hour, func(t *testing.T, l *Lock, rec *Record) error {
			return l.Finish(t.Context(), rec, deployed, "done")
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t)
			run(t, s.store, "web", deployed)
			l, err := s.store.Lock(t.Context(), "web", LockOptions{Renew: c.heartbeat})
			if err != nil {
				t.Fatal(err)
			}
			rec := begun(t, l)
			s.helmCreates(t, "web", 3, deployed)
			err = c.end(t, l, rec)
			if lost := new(LockLostError); !errors.As(err, &lost) || !strings.Contains(err.Error(), "another tool recorded revision 3, which is deployed") {
				t.Errorf("it ended with %v, want a *LockLostError", err)
			}
			if err := l.Finish(t.Context(), rec, helmrelease.StatusFailed, "overtaken"); err != nil {
				t.Error(err)
			}
			unlock(t, l)
			wantStatuses(t, s.store, "web", "1:deployed 2:failed 3:deployed")
		})
	}
}

// TestUndoDoesNotOvertakeItsRun fails if a rollback under the same lock is taken for another tool's.
func TestUndoDoesNotOvertakeItsRun(t *testing.T) {
	s := newSite(t)
	run(t, s.store, "web", deployed)
	l := lock(t, s.store, "web", LockOptions{})
	finish(t, l, begun(t, l), failed)
	rec := begun(t, l)
	for range 20 {
		l.loseIfOvertaken(t.Context())
	}
	if err := l.Save(t.Context(), rec); err != nil {
		t.Error(err)
	}
	finish(t, l, rec, deployed)
	unlock(t, l)
	wantStatuses(t, s.store, "web", "1:superseded 2:failed 3:deployed")
}
