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

// changing are the commands that change something: a cluster, or files and servers
// of others. What they do doesn't depend on anybody reading what they say.
var changing = []string{
	"upgrade", "install", "apply", "rollback", "uninstall", "test", "recover",
	"repo add", "repo update", "repo remove", "repo index", "registry login", "registry logout",
	"dependency update", "dependency build", "package", "pull", "push", "create", "plugin install", "plugin update", "plugin uninstall",
}

// outliving lets a command that changes something go on when nobody reads what it
// says.
func outliving(e *env, c *cli.Command, path string) {
	if !slices.Contains(changing, path) || c.Category == pluginGroup {
		return
	}
	c.Description += ";\n8 done, but not all that it says could be written"
	body := c.Action
	c.Action = func(c *cli.Context) error {
		e.outlive()
		return body(c)
	}
}

// outlive keeps a reader that goes away from ending the run: a write to a pipe that
// nobody reads is an error then, as one to a full disk, and no signal. (os/signal,
// SIGPIPE)
func (e *env) outlive() {
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	e.outlived = pipes
	e.streams.IgnoreWriteErrors(true)
}

// showOnly takes outlive back: what is shown is all there is to a plan.
func (e *env) showOnly() {
	if e.outlived == nil {
		return
	}
	signal.Stop(e.outlived)
	e.outlived = nil
	e.streams.IgnoreWriteErrors(false)
}

// An untoldError says that a command has done what it was asked for, and that
// something of what it said could not be written.
type untoldError struct{ err error }

func (e *untoldError) Error() string { return fmt.Sprintf("done, but %s", e.err) }
func (e *untoldError) Unwrap() error { return e.err }

// outcome tells a failure of what was to be done, or nil, from what could not be
// written. Where showing is all there is to do the latter is the former.
func (e *env) outcome(err error) (failure, unwritten error) {
	unwritten = e.streams.WriteErrors()
	if output.OnlyWriteErrors(err) {
		unwritten, err = errors.Join(err, unwritten), nil
	}
	if unwritten != nil && e.outlived == nil && (err == nil || errors.Is(err, errChanges)) {
		return unwritten, nil
	}
	return err, unwritten
}

// code is the exit code of the program when err is how the command has ended.
func (e *env) code(ctx context.Context, err error) int {
	failure, unwritten := e.outcome(err)
	if failure == nil && unwritten != nil {
		return exitUntold
	}
	return exitCode(ctx, failure)
}
