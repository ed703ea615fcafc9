package release

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// sleptThrough makes a lock look like one of a process that was paused.
func sleptThrough(l *Lock, renewed func(time.Time) time.Time) {
	l.renewed.Store(new(renewed(time.Now())))
}

// A run that was paused asks before its next change whether it still has the Lease, and doesn't wait for
// the next heartbeat. That a machine slept shows only on the wall clock.
func TestConfirmAfterAPause(t *testing.T) {
	s := newSite(t)
	opts := LockOptions{Duration: time.Hour, Renew: 30 * time.Minute, Warn: func(string) {}}
	pauses := map[string]func(time.Time) time.Time{
		"paused": func(now time.Time) time.Time { return now.Add(-2 * time.Hour) },
		"asleep": func(now time.Time) time.Time { return now.Round(0).Add(-2 * time.Hour) },
	}
	for name, pause := range pauses {
		t.Run(name, func(t *testing.T) {
			l, err := s.store.Lock(t.Context(), name, opts)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.confirmHeld(t.Context()); err != nil {
				t.Fatalf("Confirm before the pause: %v", err)
			}
			version := s.lease(t, name).ResourceVersion
			sleptThrough(l, pause)
			if err := l.confirmHeld(t.Context()); err != nil {
				t.Errorf("Confirm when nobody has taken over: %v", err)
			}
			if s.lease(t, name).ResourceVersion == version {
				t.Error("it didn't ask")
			}

			s.bury(t, name)
			next := lock(t, s.store, name, LockOptions{})
			sleptThrough(l, pause)
			if err := l.confirmHeld(t.Context()); !errors.As(err, new(*LockLostError)) {
				t.Errorf("Confirm after somebody has taken over = %v, want a *LostError", err)
			}
			if l.Context().Err() == nil {
				t.Error("its context goes on")
			}
			unlock(t, l)
			unlock(t, next)
		})
	}
}

// The operation that a run sets while a heartbeat is under way isn't overwritten by the answer.
func TestOperationSetDuringAHeartbeat(t *testing.T) {
	s := newSite(t)
	var l *Lock
	said := false
	store := s.through(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/leases/") && !said {
				said = true
				l.SetOperation("another")
			}
			return response, err
		})
	})
	var err error
	l, err = store.Lock(t.Context(), "web", LockOptions{Operation: "one", Duration: time.Hour, Renew: 30 * time.Minute, Warn: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"one", "another"} {
		if err := l.heartbeat(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := s.lease(t, "web").Annotations[annotationOperation]; got != want {
			t.Errorf("the Lease says %q, want %q", got, want)
		}
	}
	unlock(t, l)
}

// A run that is paused while it writes its record finds a changed history when it continues. The error says
// that the lock was lost, not that somebody was faster, and the record is left to the new holder.
func TestPausedWhileItsRecordIsWritten(t *testing.T) {
	for name, lost := range map[string]error{"answered": nil, "answer lost": io.ErrUnexpectedEOF} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			var l *Lock
			paused := false
			pause := func() {
				s.bury(t, "web")
				next := lock(t, s.store, "web", LockOptions{})
				if _, recovered, err := next.Recover(t.Context()); err != nil || len(recovered) != 1 {
					t.Errorf("Recover = %v, %v", recovered, err)
				}
				finish(t, next, begun(t, next, func(r *Record) { r.Version = 2 }), deployed)
				unlock(t, next)
				sleptThrough(l, func(now time.Time) time.Time { return now.Add(-2 * time.Hour) })
			}
			store := s.through(func(next http.RoundTripper) http.RoundTripper {
				return transport(func(r *http.Request) (*http.Response, error) {
					response, err := next.RoundTrip(r)
					if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/secrets") && !paused {
						paused = true
						pause()
						if lost != nil {
							response.Body.Close()
							return nil, lost
						}
					}
					return response, err
				})
			})
			var err error
			l, err = store.Lock(t.Context(), "web", LockOptions{Duration: time.Hour, Renew: 30 * time.Minute, Warn: func(string) {}})
			if err != nil {
				t.Fatal(err)
			}
			err = l.Begin(t.Context(), sample("web", 1, pending), current(t, s.store, "web"))
			if !errors.As(err, new(*LockLostError)) || errors.As(err, new(*HistoryChangedError)) {
				t.Errorf("Begin = %v, want a *LostError", err)
			}
			unlock(t, l)
			wantStatuses(t, s.store, "web", "1:failed 2:deployed")
		})
	}
}
