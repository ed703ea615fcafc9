package track

import (
	"time"

	"deployer/track/class"
)

// timers are the times from which the limits of an object itself count; those of its pods have theirs. They pause
// while the API server is unreachable: silence proves nothing then.
type timers struct {
	appliedAt     time.Time                 // by our clock
	progressedAt  time.Time                 // when a count was last higher than ever
	highestCounts map[string]int            // so far; a higher one is progress
	failingSince  map[class.Class]time.Time // since when the object itself has a problem; the empty class is since when it is ready

	rolloutSeen       bool      // the object was observed while it wasn't ready
	readySince        time.Time // since when its rule calls it ready; zero when it doesn't
	runningAgainSince time.Time // since when containers that have crashed run again; zero when they don't

	outages     int       // of the object's watches, that are active
	pausedSince time.Time // when the first of them began; zero when the timers run
}

// arePaused reports whether there is an outage.
func (t *timers) arePaused() bool { return !t.pausedSince.IsZero() }

// now converts a time of the clock to the time of the timers, which stands still during an
// outage.
func (t *timers) now(clock time.Time) time.Time {
	if t.arePaused() {
		return t.pausedSince
	}
	return clock
}

// since returns since when the object itself has a problem; it begins now unless it has
// begun.
func (t *timers) since(c class.Class, now time.Time) time.Time {
	if at, known := t.failingSince[c]; known {
		return at
	}
	t.failingSince[c] = now
	return now
}

// A schedule says when an object's status has to be computed again.
type schedule struct {
	isDue      bool      // something has changed since
	recheckAt  time.Time // when time alone may change it; zero for never
	computedAt time.Time // when it was computed last
}

// isDueAt reports whether the status has to be computed at a time.
func (s schedule) isDueAt(now time.Time) bool {
	return s.isDue || !s.recheckAt.IsZero() && !now.Before(s.recheckAt)
}

// earliest returns the first of the times that aren't zero; zero when all are.
func earliest(times ...time.Time) time.Time {
	var first time.Time
	for _, at := range times {
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}
