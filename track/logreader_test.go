package track

import (
	"strconv"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"deployer/track/logs"
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

func TestLinesAreDroppedAndCountedWhileTheViewIsSlow(t *testing.T) {
	lines := make(chan Event, 2)
	sampler := lineSampler{lines: lines}
	for i := range 5 {
		sampler.add(logs.Line{Text: strconv.Itoa(i)})
	}
	if a, b := <-lines, <-lines; a.Log.Text != "0" || b.Log.Text != "1" || len(lines) > 0 {
		t.Errorf("%q and %q were passed on, want the first two lines alone", a.Log.Text, b.Log.Text)
	}
	sampler.end()
	if last := <-lines; last.Log.Text != "4" || last.Log.Dropped != 2 {
		t.Errorf("the end is %q with %d lines dropped before, want the last line and 2", last.Log.Text, last.Log.Dropped)
	}
}
