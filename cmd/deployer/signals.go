package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// A signalError is the cause of a context that a signal has ended. Package net/http returns
// this cause where other code returns context.Canceled, so it counts as that.
type signalError struct{ signal syscall.Signal }

func (e *signalError) Error() string { return fmt.Sprintf("stopped by %s", signalName(e.signal)) }

func (e *signalError) Is(target error) bool { return target == context.Canceled }

// code is what shells report for a process that a signal has ended.
func (e *signalError) code() int { return 128 + int(e.signal) }

func signalName(s syscall.Signal) string {
	switch s {
	case syscall.SIGINT:
		return "SIGINT"
	case syscall.SIGTERM:
		return "SIGTERM"
	case syscall.SIGHUP:
		return "SIGHUP"
	}
	return s.String()
}

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
	done := make(chan struct{})
	go func() {
		var first time.Time
		for {
			select {
			case <-done:
				return
			case s := <-signals:
				cause := &signalError{signal: s.(syscall.Signal)}
				switch {
				case first.IsZero():
					first = time.Now()
					cancel(cause)
				case time.Since(first) >= secondSignalAfter:
					os.Exit(cause.code())
				}
			}
		}
	}()
	return ctx, sync.OnceFunc(func() {
		signal.Stop(signals)
		close(done)
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
