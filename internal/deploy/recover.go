package deploy

import (
	"context"
	"fmt"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/release"
)

// A RolledBackError is a failed run that was undone, or could not be.
type RolledBackError struct {
	Release  string
	Verb     Verb // what undid it: rollback, or uninstall after a failed install
	Cause    error
	Rollback error // nil: undone
}

func (e *RolledBackError) Error() string {
	if e.Rollback != nil {
		return fmt.Sprintf("%s\nand the %s failed too: %s", e.Cause, e.Verb, e.Rollback)
	}
	if e.Verb == Uninstall {
		return fmt.Sprintf("release %s failed, and has been uninstalled due to atomic being set: %s", e.Release, e.Cause)
	}
	return fmt.Sprintf("release %s failed, and has been rolled back due to atomic being set: %s", e.Release, e.Cause)
}

// Unwrap gives both failures.
func (e *RolledBackError) Unwrap() []error { return []error{e.Cause, e.Rollback} }

// Undo follows a failed run of op with its opposite: back to the last
// successful revision, or away with a first install. It is an operation of its
// own, with a plan and a record of its own, and waits. The error is always a
// *RolledBackError about cause.
func (d *Deployer) Undo(ctx context.Context, lock *Held, op *Operation, cause error, observe Observer) error {
	undo := *d
	undo.Settings.Wait = true
	result := &RolledBackError{Release: op.Release, Verb: Rollback, Cause: cause}
	var (
		back *Operation
		err  error
	)
	if op.Base == nil || op.Verb == Install {
		result.Verb = Uninstall
		back, err = undo.Uninstall(ctx, UninstallRequest{Name: op.Release, KeepHistory: op.Base != nil})
	} else {
		back, err = undo.Rollback(ctx, RollbackRequest{Name: op.Release})
	}
	if err == nil && back != nil {
		_, err = undo.Execute(ctx, lock, back, observe)
	}
	result.Rollback = err
	return result
}

// Started tells whether a run of the operation got far enough to leave
// something that can be undone.
func Started(record *release.Record) bool {
	return record != nil && record.Info.Status == helmrelease.StatusFailed
}
