package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"deployer/internal/view/output"
)

// changingCommands are the commands that change a cluster, files or servers. They must not
// stop because nobody reads their output.
var changingCommands = []string{
	"upgrade", "install", "apply", "rollback", "uninstall", "test", "recover",
	"repo add", "repo update", "repo remove", "repo index", "registry login", "registry logout",
	"dependency update", "dependency build", "package", "pull", "push", "create", "plugin install", "plugin update", "plugin uninstall",
}

// tolerateBrokenPipes lets a changing command continue when nobody reads its output.
func tolerateBrokenPipes(e *env, c *cli.Command, path string) {
	if !slices.Contains(changingCommands, path) || c.Category == pluginGroup {
		return
	}
	c.Description = withUnwritten(c.Description)
	body := c.Action
	c.Action = func(c *cli.Context) error {
		e.surviveBrokenPipes()
		return body(c)
	}
}

// withUnwritten adds the exit code of an unwritten output to those in a help text, unless
// this refers to another command's.
func withUnwritten(help string) string {
	const code, signals = "; 8 done, but some output could not be written", "; 130, 143"
	_, codes, _ := strings.Cut(help, "Exit codes: ")
	switch {
	case strings.HasPrefix(codes, "the same as"):
		return help
	case strings.Contains(codes, signals):
		return strings.Replace(help, signals, code+signals, 1)
	}
	return help + code
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
