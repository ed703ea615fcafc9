package logs

import (
	"sync"
	"time"
)

// A Limit lets a number of lines through at once, and a number per second after
// that. It is safe for concurrent use; nil lets everything through.
type Limit struct {
	mu    sync.Mutex
	rate  float64
	burst float64
	left  float64
	last  time.Time
}

// NewLimit returns a Limit.
func NewLimit(perSecond, burst int) *Limit {
	return &Limit{rate: float64(perSecond), burst: float64(burst), left: float64(burst)}
}

// Allow reports whether a line may pass now.
func (l *Limit) Allow(now time.Time) bool {
	if l == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.last.IsZero() {
		l.left = min(l.burst, l.left+l.rate*now.Sub(l.last).Seconds())
	}
	l.last = now
	if l.left < 1 {
		return false
	}
	l.left--
	return true
}
