package track

import (
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

// A lineSampler passes on the lines of one container within its rate limits. Each line says
// how many lines were dropped before it.
type lineSampler struct {
	queue   *logs.Queue[LogLine]
	line    LogLine // but for its time and text
	limits  []*rate.Limiter
	skipped *logs.Line // the last one that was dropped
	dropped int
}

func (s *lineSampler) add(l logs.Line) {
	if !s.mayPass(time.Now()) {
		s.skipped = &l
		s.dropped++
		return
	}
	s.send(l)
}

func (s *lineSampler) mayPass(now time.Time) bool {
	for _, limit := range s.limits {
		if !limit.AllowN(now, 1) {
			return false
		}
	}
	return true
}

func (s *lineSampler) send(l logs.Line) {
	line := s.line
	line.Time, line.Text, line.Dropped = l.Time, l.Text, s.dropped
	s.skipped, s.dropped = nil, 0
	s.queue.Put(line)
}

// end sends the last line of the log, whatever the limits are.
func (s *lineSampler) end() {
	if s.skipped != nil {
		s.dropped--
		s.send(*s.skipped)
	}
}
