package track

import (
	"testing"
	"time"

	"golang.org/x/time/rate"
)

func TestSamplerPassesTheFirstLinesAndThenSomeEachSecond(t *testing.T) {
	sampler, now, passed := lineSampler{limits: []*rate.Limiter{rate.NewLimiter(lineRate, lineBurst)}}, time.Unix(1000, 0), 0
	for i := range 100_000 { // within ten seconds
		if sampler.mayPass(now.Add(time.Duration(i) * 100 * time.Microsecond)) {
			passed++
		}
	}
	if passed < 1490 || passed > 1510 {
		t.Errorf("%d lines passed in ten seconds, want 1000 and 50 per second", passed)
	}
}
