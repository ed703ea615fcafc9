package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/internal/kube"
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

// rendersHook reports whether the operation's chart has this very hook, and prunes whether the operation deletes an object that
// the release had. Of a nil operation neither is true.
func (o *Operation) rendersHook(h *helmrelease.Hook) bool {
	return o != nil && verbs[o.Verb].renders && slices.ContainsFunc(o.Next.Hooks, func(r *helmrelease.Hook) bool { return r.Manifest == h.Manifest })
}

func (o *Operation) prunes(id kube.ID) bool {
	return o != nil && slices.ContainsFunc(slices.Concat(o.Plan.Orphans()...), func(c apply.Change) bool { return c.ID == id })
}

// undoing makes the operation one that undoes a failed one: it waits until all is ready. With nil it changes nothing.
func (o *Operation) undoing(failed *Operation) *Operation {
	o.undoes, o.wait = failed, o.wait || failed != nil
	return o
}

// undo undoes a failed run: by a rollback to the last successful revision, or by an
// uninstall after a first install. That is an operation of its own, with its own plan and
// record. It undoes only this run: the failed record must still be the latest. The error is always a
// *RolledBackError about the failure.
func (l *lifecycle) undo(ctx context.Context, failed Outcome) error {
	result := &RolledBackError{Release: failed.Operation.Release, Verb: Rollback, Cause: failed.Err}
	if failed.Operation.Verb == Install {
		result.Verb = Uninstall
	}
	back, err := l.decideUndo(ctx, failed)
	if err == nil {
		for _, text := range keptCRDWarnings(failed) {
			l.warn(text)
		}
		_, err = l.execute(ctx, l.lock, back, l.opts.OnEvent)
	}
	result.Rollback = err
	return result
}

// decideUndo decides how to undo a failed run, under its lock.
func (l *lifecycle) decideUndo(ctx context.Context, failed Outcome) (*Operation, error) {
	// The end of the run may not have been recorded.
	_, _, refused := l.lock.Recover(ctx)
	if refused != nil && !kube.IsRefused(refused) {
		return nil, refused
	}
	var back *Operation
	var err error
	switch op := failed.Operation; op.Verb {
	case Install:
		back, err = l.Uninstall(ctx, UninstallRequest{Name: op.Release, KeepHistory: op.Basis.Latest != nil, undoes: op})
	case Uninstall: // back to the revision that was being uninstalled
		back, err = l.Rollback(ctx, RollbackRequest{Name: op.Release, Revision: failed.Record.Version, undoes: op})
	default:
		back, err = l.Rollback(ctx, RollbackRequest{Name: op.Release, undoes: op})
	}
	switch {
	case err != nil:
	case !failed.Record.IsLatest(back.Basis.Latest):
		err = &release.HistoryChangedError{Namespace: l.Namespace, Name: l.name, Revision: failed.Record.Version}
	case refused != nil && !back.endsRefusal(refused):
		err = refused
	case refused != nil:
		back.goUnrecorded()
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
		if c.Action != decide.Create && c.Action != decide.Update || failed.Record.Journal.Objects[apply.Key(c.ID)].UID == "" {
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
