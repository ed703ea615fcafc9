package track

import (
	"slices"
	"time"

	"golang.org/x/time/rate"

	"deployer/track/logs"
)

const (
	lineRate   = 50   // lines per second of a container, after the first ones
	lineBurst  = 1000 // the first ones
	totalRate  = 200  // lines per second of all containers
	totalBurst = 3000
)

// A lineSampler passes on the lines of one container within its rate limits, and never waits for
// a slow view. Each line says how many lines were dropped before it.
type lineSampler struct {
	lines   chan<- *LogLine
	line    LogLine // but for its time and text
	limits  []*rate.Limiter
	skipped *logs.Line // the last one that was dropped
	dropped int
}

func (s *lineSampler) add(l logs.Line) {
	if !s.mayPass(time.Now()) || !s.send(l) {
		s.skipped = &l
		s.dropped++
	}
}

func (s *lineSampler) mayPass(now time.Time) bool {
	return !slices.ContainsFunc(s.limits, func(limit *rate.Limiter) bool { return !limit.AllowN(now, 1) })
}

// send returns false if too many lines are on their way.
func (s *lineSampler) send(l logs.Line) bool {
	line := s.line
	line.Time, line.Text, line.Dropped = l.Time, l.Text, s.dropped
	select {
	case s.lines <- &line:
		s.skipped, s.dropped = nil, 0
		return true
	default:
		return false
	}
}

// end sends the last line of the log, whatever the limits are.
func (s *lineSampler) end() {
	if s.skipped != nil {
		s.dropped--
		s.send(*s.skipped)
	}
}
