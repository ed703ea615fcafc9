package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/urfave/cli/v2"

	"deployer/internal/view/output"
)

// changingCommands are the commands that change something: a cluster, or files and servers
// of others. What they do doesn't depend on anybody reading what they say.
var changingCommands = []string{
	"upgrade", "install", "apply", "rollback", "uninstall", "test", "recover",
	"repo add", "repo update", "repo remove", "repo index", "registry login", "registry logout",
	"dependency update", "dependency build", "package", "pull", "push", "create", "plugin install", "plugin update", "plugin uninstall",
}

// outliveReaders lets a command that changes something go on when nobody reads what it
// says.
func outliveReaders(e *env, c *cli.Command, path string) {
	if !slices.Contains(changingCommands, path) || c.Category == pluginGroup {
		return
	}
	c.Description += "; 8 done, but some output could not be written"
	body := c.Action
	c.Action = func(c *cli.Context) error {
		e.surviveBrokenPipes()
		return body(c)
	}
}

// surviveBrokenPipes keeps a reader that goes away from ending the run: a write to a pipe that
// nobody reads is an error then, as one to a full disk, and no signal. (os/signal,
// SIGPIPE)
func (e *env) surviveBrokenPipes() {
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	e.brokenPipes = pipes
	e.streams.IgnoreWriteErrors(true)
}

// failOnBrokenPipes takes surviveBrokenPipes back: what is shown is all there is to a plan.
func (e *env) failOnBrokenPipes() {
	if e.brokenPipes == nil {
		return
	}
	signal.Stop(e.brokenPipes)
	e.brokenPipes = nil
	e.streams.IgnoreWriteErrors(false)
}

// An unwrittenError says that a command has done what it was asked for, and that
// something of what it said could not be written.
type unwrittenError struct{ err error }

func (e *unwrittenError) Error() string { return fmt.Sprintf("done, but %s", e.err) }
func (e *unwrittenError) Unwrap() error { return e.err }

// splitOutcome tells a failure of what was to be done, or nil, from what could not be
// written. Where showing is all there is to do the latter is the former.
func (e *env) splitOutcome(err error) (failure, unwritten error) {
	unwritten = e.streams.WriteErrors()
	if output.OnlyWriteErrors(err) {
		unwritten, err = errors.Join(err, unwritten), nil
	}
	if unwritten != nil && e.brokenPipes == nil && (err == nil || errors.Is(err, errChanges)) {
		return unwritten, nil
	}
	return err, unwritten
}

// exitCode is the exit code of the program when err is how the command has ended.
func (e *env) exitCode(ctx context.Context, err error) int {
	failure, unwritten := e.splitOutcome(err)
	if failure == nil && unwritten != nil {
		return exitUnwritten
	}
	return exitCode(ctx, failure)
}

// isQuiet tells whether nothing is written to standard error unless something
// fails: under the name helm where no person reads, for tasks of CI that take any
// such output for a failure. --debug and --progress plain ask for it.
func (e *env) isQuiet() bool {
	return e.call.asHelm && !e.streams.ErrTTY && !e.global.debug && e.global.progress != "plain"
}
