package deploy

import (
	"context"
	"errors"
	"fmt"

	"deployer/apply"
	"deployer/release"
)

// A RolledBackError is a failed run that was undone, or could not be.
type RolledBackError struct {
	Release  string
	Verb     Verb // how it was undone: Rollback or Uninstall
	Cause    error
	Rollback error // nil: undone
}

func (e *RolledBackError) Error() string {
	if errors.As(e.Rollback, new(*apply.StayedError)) {
		return fmt.Sprintf("%s\nand was rolled back, but not completely: %s", e.Cause, e.Rollback)
	}
	if e.Rollback != nil {
		return fmt.Sprintf("%s\nand the %s failed too: %s", e.Cause, e.Verb, e.Rollback)
	}
	if e.Verb == Uninstall {
		return fmt.Sprintf("release %s failed, and has been uninstalled due to atomic being set: %s", e.Release, e.Cause)
	}
	return fmt.Sprintf("release %s failed, and has been rolled back due to atomic being set: %s", e.Release, e.Cause)
}

// Unwrap gives both failures.
func (e *RolledBackError) Unwrap() error { return errors.Join(e.Cause, e.Rollback) }

// undo undoes a failed run: by a rollback to the last successful revision, or by an
// uninstall after a first install. That is an operation of its own, with its own plan and
// record, and it waits until all is ready. It undoes only this run: the failed record
// must still be the latest. The error is always a *RolledBackError about the failure.
func (l *lifecycle) undo(ctx context.Context, failed Outcome) error {
	undo := *l.Deployer
	undo.Settings.Wait, undo.undoing = true, true
	op := failed.Operation
	for _, c := range op.Plan.Prune {
		undo.prunedByFailedRun = append(undo.prunedByFailedRun, c.ID)
	}
	if op.Verb == Install || op.Verb == Upgrade {
		undo.failedRunHooks = op.Next.Hooks
	}
	result := &RolledBackError{Release: op.Release, Verb: Rollback, Cause: failed.Err}
	if op.Verb == Install {
		result.Verb = Uninstall
	}
	back, err := l.decideUndo(ctx, &undo, failed)
	if err == nil {
		for _, text := range keptCRDWarnings(failed) {
			l.warn(text)
		}
		_, err = undo.execute(ctx, l.lock, back, l.opts.OnEvent)
	}
	result.Rollback = err
	return result
}

// decideUndo decides how to undo a failed run, under its lock.
func (l *lifecycle) decideUndo(ctx context.Context, d *Deployer, failed Outcome) (*Operation, error) {
	// The end of the run may not have been recorded.
	if _, _, err := l.lock.Recover(ctx); err != nil {
		return nil, err
	}
	var back *Operation
	var err error
	switch op := failed.Operation; {
	case op.Verb == Install:
		back, err = d.Uninstall(ctx, UninstallRequest{Name: op.Release, KeepHistory: op.Basis.Latest != nil})
	case op.Verb == Uninstall: // back to the revision that was being uninstalled
		back, err = d.Rollback(ctx, RollbackRequest{Name: op.Release, Revision: failed.Record.Version})
	default:
		back, err = d.Rollback(ctx, RollbackRequest{Name: op.Release})
	}
	if err == nil && !failed.Record.IsLatest(back.Basis.Latest) {
		err = &release.HistoryChangedError{Namespace: l.Namespace, Name: l.name, Revision: failed.Record.Version}
	}
	return back, err
}

// keptCRDWarnings returns warnings about the crds/ definitions that the failed run wrote. The undo
// keeps them: objects may already use new fields, which would be lost. Objects not yet
// rewritten still store the removed ones.
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#field-pruning
func keptCRDWarnings(failed Outcome) []string {
	var out []string
	for _, c := range failed.Operation.Plan.CRDs {
		if c.Action != apply.Create && c.Action != apply.Update || failed.Record.Journal.Objects[apply.Key(c.ID)].UID == "" {
			continue
		}
		text := c.ID.String() + ": stays as the failed run left it, because objects may already use it"
		if gone := c.DefinitionLosses(); gone != "" {
			text += "; removed parts are not restored: " + gone + " (objects keep these fields until their next write: if they need them, apply the former definition soon)"
		}
		out = append(out, text)
	}
	return out
}
