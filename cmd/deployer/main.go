// Command deployer deploys Helm charts to Kubernetes by server-side apply and
// follows them until they are ready.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

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
	case err != nil && line.leaf != nil:
		e.useFlags(line.leaf.flags, reporting)
	case err != nil:
	case line.help != noHelp || line.leaf == nil:
		err = e.printHelp(line.words, cmp.Or(line.help, usualHelp))
	default:
		err = line.run(ctx, e)
	}
	return e.finish(ctx, err)
}

// A signalError is the cause of a context that a signal has ended. Package net/http returns
// this cause where other code returns context.Canceled, so it counts as that.
type signalError struct{ signal os.Signal }

// signalNames are the signals that end a run, as people know them.
var signalNames = map[os.Signal]string{syscall.SIGINT: "SIGINT", syscall.SIGTERM: "SIGTERM", syscall.SIGHUP: "SIGHUP"}

func (e *signalError) name() string  { return signalNames[e.signal] }
func (e *signalError) Error() string { return "stopped by " + e.name() }

func (e *signalError) Is(target error) bool { return target == context.Canceled }

// code is what shells report for a process that a signal has ended.
func (e *signalError) code() int { return 128 + int(e.signal.(syscall.Signal)) }

// secondSignalAfter is how long after the first signal another one counts. timeout(1), npm, sudo and runners of CI send
// one stop to the process and to its group: it arrives twice, within microseconds.
const secondSignalAfter = 2 * time.Second

// withSignals ends the context on the first SIGINT, SIGTERM or SIGHUP (the terminal
// is gone), so the run can record how it ended. Another one ends the process at once if it comes
// secondSignalAfter later or more. A SIGHUP that nohup ignores stays ignored. The returned function stops
// handling signals; it may be called again.
func withSignals(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		var first time.Time
		for s := range signals {
			cause := &signalError{signal: s}
			switch {
			case first.IsZero():
				first = time.Now()
				cancel(cause)
			case time.Since(first) >= secondSignalAfter:
				os.Exit(cause.code())
			}
		}
	}()
	return ctx, sync.OnceFunc(func() {
		signal.Stop(signals)
		close(signals)
		cancel(nil)
	})
}

// signalOf returns the signal that ended the context, or nil.
func signalOf(ctx context.Context) *signalError {
	stopped, _ := errors.AsType[*signalError](context.Cause(ctx))
	return stopped
}

// nameSignal names the signal that ended the context in an error that only says that
// the context has ended.
func nameSignal(ctx context.Context, err error) error {
	signal := signalOf(ctx)
	if signal == nil || err == nil || errors.As(err, new(*signalError)) {
		return err
	}
	return fmt.Errorf("%w: %w", signal, err)
}

// stderrGrace is how long the program waits at its end for what others still write to standard
// error. A process that a credential plugin has left running may never close it.
const stderrGrace = 100 * time.Millisecond

// filterStderr replaces os.Stderr, to which libraries and the credential plugins of client-go
// write, by a pipe to filtered, the filter of our own text. The function that it returns undoes
// that. If errOut isn't os.Stderr, as in tests, it does nothing.
// (k8s.io/client-go/plugin/pkg/client/auth/exec/exec.go)
func filterStderr(errOut io.Writer, filtered io.Writer) func() {
	own := os.Stderr
	if errOut != own {
		return func() {}
	}
	read, write, err := os.Pipe()
	if err != nil {
		return func() {} // too many files are open, and the command will say so
	}
	os.Stderr = write
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(filtered, read)
		_, _ = io.Copy(io.Discard, read) // so that nobody waits when filtered can't be written
	}()
	return func() {
		os.Stderr = own
		write.Close()
		_ = read.SetReadDeadline(time.Now().Add(stderrGrace))
		<-done
		read.Close()
	}
}
