package release

import (
	"errors"
	"testing"
	"time"
)

// sleptThrough makes a lock look like one of a process that was paused.
func sleptThrough(l *Lock, renewed func(time.Time) time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed = renewed(time.Now())
}

// Who was paused asks before the next change, not only when the next heartbeat is
// due. A machine's sleep shows on the wall clock only.
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
			if err := l.Confirm(t.Context()); err != nil {
				t.Fatalf("Confirm before the pause: %v", err)
			}
			version := s.lease(t, name).ResourceVersion
			sleptThrough(l, pause)
			if err := l.Confirm(t.Context()); err != nil {
				t.Errorf("Confirm when nobody has taken over: %v", err)
			}
			if s.lease(t, name).ResourceVersion == version {
				t.Error("it didn't ask")
			}

			s.bury(t, name)
			next := lock(t, s.store, name, LockOptions{})
			sleptThrough(l, pause)
			if err := l.Confirm(t.Context()); !errors.As(err, new(*LostError)) {
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
