package collector

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// A small heap isn't collected, a medium one as Go does it, and a large one with little spare memory.
func TestGCPercentFor(t *testing.T) {
	for live := uint64(0); live < 2*frugalHeap; live += 1 << 18 {
		percent := gcPercentFor(live)
		next := max(live, goStartHeap) * uint64(100+percent) / 100
		want := max(leastHeap, min(2*live, frugalHeap), live*(100+gcPercent)/100)
		if next > want || next < want*9/10 {
			t.Errorf("with %d KiB in use, %d percent: the next collection is at %d KiB, want %d KiB", live>>10, percent, next>>10, want>>10)
		}
	}
}

// The percentage follows the heap both ways: one that stayed at that of a small heap would let a large
// release take many times its memory.
func TestGCFollowsTheHeap(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	defer func(before bool) { isOurs = before }(isOurs)
	isOurs = true
	Start()
	large := make([]byte, 4*leastHeap)
	awaitGCPercent(t, func(percent uint64) bool { return percent == gcPercent })
	runtime.KeepAlive(large)
}

// Who sets GOGC or GOMEMLIMIT gets what Go makes of them.
func TestUnlessTheUserHasSetIt(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	t.Setenv("GOGC", "50")
	if delayFirstGC() || debug.SetGCPercent(100) != 100 {
		t.Error("the collector was set although GOGC sets it")
	}
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "1GiB")
	if delayFirstGC() || debug.SetGCPercent(100) != 100 {
		t.Error("the collector was set although GOMEMLIMIT sets it")
	}
	t.Setenv("GOMEMLIMIT", "")
	if !delayFirstGC() || debug.SetGCPercent(100) != 400 {
		t.Error("the first collection wasn't delayed")
	}
}

// awaitGCPercent collects garbage until the percentage is as wanted; the test's time limit ends it.
func awaitGCPercent(t *testing.T, wanted func(uint64) bool) {
	t.Helper()
	for t.Context().Err() == nil {
		runtime.GC()
		samples := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(samples)
		if wanted(samples[0].Value.Uint64()) {
			return
		}
		runtime.Gosched()
	}
}
