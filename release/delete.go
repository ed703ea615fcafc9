package release

import (
	"context"
	"errors"
	"fmt"
	"slices"

	helmrelease "helm.sh/helm/v3/pkg/release"
	helmtime "helm.sh/helm/v3/pkg/time"
)

// BeginUninstall marks rec, the newest revision as it was read, as uninstalling before
// anything is deleted. If the uninstall fails later, Finish records that. decided
// identifies the history that the uninstall was decided on. The error is a
// *HistoryChangedError if somebody has changed the release since, a *PendingError if a
// dead run left it pending, or a *LockLostError.
func (l *Lock) BeginUninstall(ctx context.Context, rec *Record, decided Identity) error {
	if err := l.checkHeld(); err != nil {
		return err
	}
	h, err := l.historyAsDecided(ctx, rec.Version, decided)
	if err != nil {
		return err
	}
	latest := h.Latest()
	if latest == nil || latest.Revision != rec.Version {
		return l.historyChangedError(rec.Version)
	}
	if latest.Status.IsPending() {
		return l.pendingError(latest.Revision, latest.Status)
	}
	status, description, deleted := rec.Info.Status, rec.Info.Description, rec.Info.Deleted
	l.markUninstalling(rec, h)
	if err := l.write(ctx, rec); err != nil {
		return l.preferLockLostError(ctx, err)
	}
	if _, err := l.confirmOthers(ctx, rec, identify(h.Revisions[:len(h.Revisions)-1])); err != nil {
		// A tool without a Lease, such as Helm, has begun another revision.
		if rec.Info.Deleted = deleted; isUnfinished(status) {
			status = helmrelease.StatusFailed
		}
		_, ferr := l.finish(ctx, rec, status, description)
		return errors.Join(l.preferLockLostError(ctx, err), ferr)
	}
	l.inProgress.Store(int64(rec.Version))
	return nil
}

// BeginUnrecorded is BeginUninstall where admission refuses to write the record: only rec itself says that the uninstall
// begins.
func (l *Lock) BeginUnrecorded(ctx context.Context, rec *Record, decided Identity) error {
	if err := l.checkHeld(); err != nil {
		return err
	}
	h, err := l.historyAsDecided(ctx, rec.Version, decided)
	if err == nil {
		l.markUninstalling(rec, h)
	}
	return err
}

// markUninstalling marks rec, the latest of h. A record that Helm left uninstalling was deployed before, unless
// another one still is.
func (l *Lock) markUninstalling(rec *Record, h *History) {
	wasDeployed := rec.Succeeded() || rec.Journal == nil && rec.Info.Status == helmrelease.StatusUninstalling && h.Deployed() == nil
	l.signRecord(rec)
	rec.Journal.Step = ""
	rec.Journal.WasDeployed = wasDeployed
	rec.Info.Status = helmrelease.StatusUninstalling
	rec.Info.Deleted = helmtime.Now()
	rec.Info.Description = "Deletion in progress (or silently failed)" // Helm's words
}

// FinishUninstall records that all objects were deleted. It deletes all revisions, or
// with keep marks the newest as uninstalled. Like Finish, it records the end for a short time after
// ctx has ended; deleting revisions uses ctx. If it is killed in between, the release is
// uninstalled and has a history.
func (l *Lock) FinishUninstall(ctx context.Context, rec *Record, keep bool, description string) error {
	if !keep && rec.Info.Status == helmrelease.StatusUninstalled { // only records are left
		return l.deleteRevisions(ctx, rec.Version)
	}
	rec.Info.Deleted = helmtime.Now()
	all, err := l.finish(ctx, rec, helmrelease.StatusUninstalled, description)
	if err != nil {
		return err
	}
	if !keep {
		return l.deleteRevisions(ctx, rec.Version)
	}
	if all != nil {
		ctx, cancel := withTimeToFinish(ctx)
		defer cancel()
		l.supersede(ctx, rec.Version, all)
	}
	return nil
}

// deleteRevisions deletes all revisions up to newest, that one last.
func (l *Lock) deleteRevisions(ctx context.Context, newest int) error {
	all, err := l.store.list(ctx, l.name, ownerParts, ownerHelm)
	if err != nil {
		return err
	}
	for _, upTo := range []int{newest - 1, newest} {
		n, _ := slices.BinarySearchFunc(all.heads, upTo+1, func(s Summary, revision int) int { return s.Revision - revision })
		if err := l.store.deleteOldest(ctx, all, n, upTo); err != nil {
			return fmt.Errorf("release %s/%s is uninstalled, but its history isn't deleted: %w", l.store.namespace, l.name, err)
		}
		all.heads = all.heads[n:]
	}
	return nil
}

// trim deletes the oldest revisions until at most keep are left; 0 keeps all. It
// keeps the last successful revision and all later ones, because they show which objects
// may exist; without a successful revision it deletes nothing. It also deletes parts of
// large records that no revision refers to.
func (s *Store) trim(ctx context.Context, all *listing, keep int) error {
	if all.damaged != nil || len(all.heads) == 0 {
		return all.damaged
	}
	return s.deleteOldest(ctx, all, revisionsToTrim(all.heads, keep), all.heads[len(all.heads)-1].Revision)
}

// revisionsToTrim returns how many of the oldest revisions may be deleted.
func revisionsToTrim(heads []Summary, keep int) int {
	if keep <= 0 || len(heads) <= keep {
		return 0
	}
	return min(len(heads)-keep, lastSuccess(heads))
}

// lastSuccess returns the index of the newest deployed revision. Without one, it returns
// the newest superseded revision, which a killed Helm leaves, or uninstalled one; 0 if
// there is none.
func lastSuccess(heads []Summary) int {
	for _, successful := range [][]helmrelease.Status{{helmrelease.StatusDeployed}, {helmrelease.StatusSuperseded, helmrelease.StatusUninstalled}} {
		for i, s := range slices.Backward(heads) {
			if slices.Contains(successful, s.Status) {
				return i
			}
		}
	}
	return 0
}
