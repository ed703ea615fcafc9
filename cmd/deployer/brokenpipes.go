package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"deployer/internal/view/output"
)

const unwritten = "; 8 done, but some output could not be written"

// withUnwritten adds the exit code of an unwritten output to exit codes, unless they refer to another command's.
func withUnwritten(codes string) string {
	if strings.HasPrefix(codes, "the same as") {
		return codes
	}
	others, signals, found := strings.Cut(codes, "; 130, 143")
	if found {
		signals = "; 130, 143" + signals
	}
	return others + unwritten + signals
}

// surviveBrokenPipes makes a write to a closed pipe an error, like one to a full disk, instead
// of a signal that ends the program. (os/signal, SIGPIPE)
func (c *console) surviveBrokenPipes() {
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	c.brokenPipes = pipes
	c.streams.IgnoreWriteErrors(true)
}

// failOnBrokenPipes undoes surviveBrokenPipes, for plans, whose only purpose is their output.
func (c *console) failOnBrokenPipes() {
	if c.brokenPipes == nil {
		return
	}
	signal.Stop(c.brokenPipes)
	c.brokenPipes = nil
	c.streams.IgnoreWriteErrors(false)
}

// An unwrittenError says that a command has succeeded, but not all of its output could be
// written.
type unwrittenError struct{ err error }

func (e *unwrittenError) Error() string { return fmt.Sprintf("done, but %s", e.err) }
func (e *unwrittenError) Unwrap() error { return e.err }

// splitOutcome separates a failure of the command from output that couldn't be written. For a
// command that only shows something, unwritten output is the failure.
func (c *console) splitOutcome(err error) (failure, unwritten error) {
	unwritten = c.streams.WriteErrors()
	if output.OnlyWriteErrors(err) {
		unwritten, err = errors.Join(err, unwritten), nil
	}
	if unwritten != nil && c.brokenPipes == nil && (err == nil || errors.Is(err, errChanges)) {
		return unwritten, nil
	}
	return err, unwritten
}

// exitCode is the exit code of the program when the command has ended with err.
func (c *console) exitCode(ctx context.Context, err error) int {
	failure, unwritten := c.splitOutcome(err)
	if failure == nil && unwritten != nil {
		return exitUnwritten
	}
	return exitCodeOf(ctx, failure)
}
