package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"deployer/apply/verify"
	"deployer/internal/deploy"
	"deployer/internal/planfile"
	"deployer/internal/program"
	"deployer/internal/view/output"
	"deployer/release"
)

// Exit codes. They are a promise: docs/exit-codes.md.
const (
	exitOK             = 0
	exitFailed         = 1
	exitChanges        = 2 // plan --detailed-exitcode: there are changes
	exitRejected       = 3 // nothing in the cluster was touched
	exitStale          = 4 // a saved plan no longer fits the cluster
	exitBusy           = 5 // another run holds this release
	exitRolledBack     = 6 // failed, and rolled back
	exitRollbackFailed = 7 // failed, and the rollback failed too
	exitUnwritten      = 8 // done, but not all of the output could be written
)

// errChanges ends plan --detailed-exitcode when there is something to do. It
// is an outcome, not a failure: nothing is printed for it.
var errChanges = errors.New("there are changes")

// A usageError is a command line that can't be understood.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// withUsageHint names the page that says how the command is used, unless an error says better what to do.
func (l commandLine) withUsageHint(err error) error {
	if output.Hint(err) != "" {
		return err
	}
	return program.WithHint(err, "see "+strings.TrimSpace(program.Name+" "+l.command())+" --help")
}

// alreadyShown is an error that the user has been shown already, for commands that do
// several things.
type alreadyShown struct{ error }

func (t alreadyShown) Unwrap() error { return t.error }

// withAccountHint adds a hint to an error about the account: which settings choose it, if the cluster
// rejects its credentials; which permission it lacks, if the cluster refuses a request, such as
// listing the Secrets with release records.
func withAccountHint(err error) error {
	if output.Hint(err) != "" {
		return err
	}
	if apierrors.IsUnauthorized(err) {
		return program.WithHint(err, "the cluster rejected these credentials, or they expired: log in again, or check --kubeconfig, --kube-context, KUBECONFIG and --kube-token")
	}
	if lacks := verify.MissingPermission(err, ""); lacks != nil {
		return program.WithHint(err, lacks.Missing()+": give it to the account by a Role (docs/permissions.md has what each command needs), or choose another account with --kubeconfig, --kube-context or --kube-token")
	}
	return err
}

// exitCodeOf is the exit code for how a command has ended, whether or not its output could be written.
func exitCodeOf(ctx context.Context, err error) int {
	var rejected interface{ ChangedNothing() bool } // what isn't begun says so
	rolled, isRolledBack := errors.AsType[*deploy.RolledBackError](err)
	plugged, isOfPlugin := errors.AsType[*pluginError](err)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errChanges):
		return exitChanges
	case isOfPlugin:
		return plugged.code
	case signalOf(ctx) != nil:
		return signalOf(ctx).code()
	case isRolledBack && rolled.Rollback == nil:
		return exitRolledBack
	case isRolledBack:
		return exitRollbackFailed
	case errors.As(err, new(*planfile.StaleError)): // also one that a rejection has made stale
		return exitStale
	case errors.Is(err, errUnconfirmed), errors.As(err, &rejected) && rejected.ChangedNothing():
		return exitRejected
	case errors.As(err, new(*release.BusyError)), errors.As(err, new(*release.PendingError)), errors.As(err, new(*release.HistoryChangedError)):
		return exitBusy
	}
	return exitFailed
}

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
