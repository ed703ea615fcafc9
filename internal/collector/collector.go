// Package collector sets Go's garbage collector for the program: nothing is collected while the heap is small, as it is
// while packages are initialised, and a large heap has little spare memory.
//
// It is for the main package alone, and imports little: of the packages whose imports are initialised, Go begins with
// the first one by import path (https://go.dev/ref/spec#Program_initialization), so this one comes before most
// libraries.
package collector

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// gcPercent trades processor time for memory in large heaps. With Go's default of 100 the peak memory
// of a release of thousands of objects is an eighth higher, and its processor time a quarter lower.
const gcPercent = 35

// leastHeap is how much memory the heap may have before any of it is collected. Most commands need
// less, and starting a command with the few megabytes that Go begins with took as long as all else
// that it does.
const leastHeap = 16 << 20

// frugalHeap is the heap from which memory matters more than processor time. Up to it, Go's default
// of 100 percent applies, which charts with large definitions gain from. With more, a change of a thousand objects
// needs as much memory as Helm.
const frugalHeap = 24 << 20

// goStartHeap is the heap that Go collects at with 100 percent when there is next to nothing in it.
// https://pkg.go.dev/runtime#hdr-Environment_Variables, runtime/mgcpacer.go (defaultHeapMinimum)
const goStartHeap = 4 << 20

// isOurs says that the user hasn't set the collector.
var isOurs = delayFirstGC()

// delayFirstGC lets the heap grow to leastHeap before the first collection, which packages don't need while they are
// initialised. There is hardly any garbage then, and marking what stays took a sixth of a short command's
// processor time. It changes nothing, and returns false, if the user has set the collector.
func delayFirstGC() bool {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return false
	}
	debug.SetGCPercent(leastHeap * 100 / goStartHeap)
	return true
}

// Start lets the percentage follow the heap from now on, unless the user has set the collector. It is to be called
// first in main.
func Start() {
	if isOurs {
		afterNextGC()
	}
}

// afterNextGC sets the percentage after each collection: Go has no setting for a least heap.
func afterNextGC() {
	unreachable := new([64]byte)
	runtime.AddCleanup(unreachable, func(struct{}) {
		debug.SetGCPercent(gcPercentFor(liveHeap()))
		afterNextGC()
	}, struct{}{})
}

// gcPercentFor is the percentage with which the next collection is at twice of what is in use, but at
// leastHeap at the earliest. Above frugalHeap it is at gcPercent more than what is in use.
func gcPercentFor(live uint64) int {
	upTo := func(heap uint64) int { return int(heap*100/max(live, goStartHeap)) - 100 }
	return max(gcPercent, upTo(leastHeap), min(100, upTo(frugalHeap)))
}

// liveHeap is what the last collection found to be in use.
func liveHeap() uint64 {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64()
}
