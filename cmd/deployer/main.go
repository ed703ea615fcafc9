// Command deployer deploys Helm charts to Kubernetes by server-side apply and
// follows them until they are ready.
package main

import (
	"context"
	"io"
	"log"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"

	"github.com/go-logr/logr"
	"github.com/urfave/cli/v2"
	"k8s.io/klog/v2"

	"deployer/internal/startheap"
	"deployer/internal/view/output"
)

func main() {
	silenceLibraries()
	setUpGC()
	os.Exit(execute(context.Background(), os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// silenceLibraries keeps libraries from logging to standard error, such as client-go about
// broken watches, which tracking handles. For the log of Helm's packages see helmLogFilter.
func silenceLibraries() {
	klog.SetLogger(logr.Discard())
	log.SetFlags(0)
	cli.FlagStringer = func(cli.Flag) string { return "" } // a start would describe all flags, and help_page.go does
}

// gcPercent trades processor time for memory in large heaps. With Go's default of 100 the peak memory
// of a release of thousands of objects is an eighth higher, and its processor time a quarter lower.
const gcPercent = 35

// leastHeap is how much memory the heap may have before any of it is collected. Most commands need
// less, and starting a command with the few megabytes that Go begins with took as long as all else
// that it does.
const leastHeap = startheap.Size

// frugalHeap is the heap from which memory matters more than processor time. Up to it, Go's default
// of 100 percent applies: charts with large definitions take a sixth less processor time with it, and the
// peak of thousands of objects is the same.
const frugalHeap = 40 << 20

// goStartHeap is the heap that Go collects at with 100 percent when there is next to nothing in it.
// https://pkg.go.dev/runtime#hdr-Environment_Variables, runtime/mgcpacer.go (defaultHeapMinimum)
const goStartHeap = 4 << 20

// setUpGC sets the garbage collector, unless the user has. The first collection is as startheap has it.
func setUpGC() {
	startheap.Release()
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
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

// execute is the program: tests run it in-process, as often as they like.
func execute(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, stop := withSignals(ctx)
	defer stop()
	e := newEnv(output.NewStreams(in, out, errOut, programName(args[0])), args[0])
	e.stopSignals = stop
	defer filterStderr(errOut, e.streams.Err)()
	log.SetOutput(&helmLogFilter{warn: e.printWarning, shown: map[string]bool{}})
	app := newApp(e)
	if len(args) > 1 && (args[1] == completionCommandName || args[1] == plainCompletionCommandName) {
		return e.finish(ctx, complete(ctx, e, app, args[2:], args[1] == completionCommandName))
	}
	line, err := e.parseCommandLine(app, args)
	e.call.command, e.call.flags = strings.Join(line.words, " "), line.flags
	switch {
	case err != nil:
	case line.help:
		err = e.printHelp(app, line.words, line.brief)
	default:
		err = app.RunContext(ctx, line.args)
	}
	return e.finish(ctx, err)
}
