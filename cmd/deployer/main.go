// Command deployer deploys Helm charts to Kubernetes by server-side apply and
// follows them until they are ready.
package main

import (
	"cmp"
	"context"
	"io"
	"log"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"deployer/internal/collector"
	"deployer/internal/view/output"
)

func main() {
	collector.Start()
	silenceLibraries()
	os.Exit(execute(context.Background(), os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// silenceLibraries keeps libraries from logging to standard error, such as client-go about
// broken watches, which tracking handles. For the log of Helm's packages see helmLogFilter.
func silenceLibraries() {
	klog.SetLogger(logr.Discard())
	log.SetFlags(0)
}

// execute is the program: tests run it in-process, as often as they like.
func execute(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, stop := withSignals(ctx)
	defer stop()
	e := newEnv(output.NewStreams(in, out, errOut, programName(args[0])), args[0])
	e.stopSignals = stop
	defer filterStderr(errOut, e.streams.Err)()
	log.SetOutput(&helmLogFilter{warn: e.printWarning, shown: map[string]bool{}})
	newCommands(e)
	if len(args) > 1 && (args[1] == completionCommandName || args[1] == plainCompletionCommandName) {
		return e.finish(ctx, complete(ctx, e, args[2:], args[1] == completionCommandName))
	}
	line, err := e.parseCommandLine(args[1:])
	e.call.commandLine = line
	switch {
	case err != nil:
	case line.help != noHelp || line.leaf == nil:
		err = e.printHelp(line.words, cmp.Or(line.help, usualHelp))
	default:
		err = line.run(ctx, e)
	}
	return e.finish(ctx, err)
}
