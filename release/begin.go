package release

import (
	"context"
	"errors"
	"fmt"

	helmrelease "helm.sh/helm/v3/pkg/release"
	helmtime "helm.sh/helm/v3/pkg/time"
	"k8s.io/apimachinery/pkg/types"
)

// Begin writes next, a revision with a pending status. It is the first write of a run.
// Only one run can create the Secret of a revision. This also excludes a run that was
// paused, a run without a Lease, and Helm. decided identifies the history that the
// decision was based on; next.Version must be that history's Next. Begin fills in Run,
// Holder, Process and Leased of the journal, Attempt if it is empty, ApplyMethod, and zero
// times.
//
// The error is a *HistoryChangedError if somebody else changed the release since the
// decision, a *LockLostError, or a *PendingError if a dead run left a pending revision:
// call Recover first. After an error no record remains. The exception is a *LockLostError:
// the run that now holds the release recovers the record.
func (l *Lock) Begin(ctx context.Context, next *Record, decided Identity) error {
	if err := l.checkHeld(); err != nil {
		return err
	}
	if next.Info == nil || !next.Info.Status.IsPending() {
		return fmt.Errorf("beginning release %s/%s: its record has no pending status", l.store.namespace, l.name)
	}
	if err := ValidateLabels(next.Labels); err != nil {
		return err
	}
	l.signRecord(next)
	next.ApplyMethod = ApplySSA
	next.stored = stored{}
	err := l.write(ctx, next)
	if err == nil {
		err = l.confirmNext(ctx, next, decided)
	}
	if err == nil {
		l.inProgress.Store(int64(next.Version))
		return nil
	}
	if err = l.preferLockLostError(ctx, err); errors.As(err, new(*LockLostError)) {
		return err // and the record is the new holder's to recover
	}
	return l.undoBegin(ctx, next, err)
}

// preferLockLostError returns a *LockLostError if the lock is lost, and err otherwise. A
// run that was paused sees a changed history, but the cause is that another run took the
// lock.
func (l *Lock) preferLockLostError(ctx context.Context, err error) error {
	if lost := new(LockLostError); errors.As(l.confirmHeld(ctx), &lost) {
		return lost
	}
	return err
}

// confirmNext confirms, after next is written, that it may follow the history that was decided on.
func (l *Lock) confirmNext(ctx context.Context, next *Record, decided Identity) error {
	h, err := l.confirmOthers(ctx, next, decided)
	if err != nil {
		return err
	}
	if next.Version != h.Next() {
		return l.historyChangedError(next.Version)
	}
	if latest := h.Latest(); latest != nil && latest.Status.IsPending() {
		return l.pendingError(latest.Revision, latest.Status)
	}
	return nil
}

// confirmOthers confirms, after our record is written, that it is the newest of its release, and that all others are as they were
// decided on: others may have written records meanwhile. It returns these others.
func (l *Lock) confirmOthers(ctx context.Context, ours *Record, decided Identity) (*History, error) {
	h, err := l.history(ctx)
	if err != nil {
		return nil, err
	}
	latest := h.Latest()
	if latest == nil || latest.UID != string(ours.stored.uid) {
		return nil, l.historyChangedError(ours.Version)
	}
	h.Revisions = h.Revisions[:len(h.Revisions)-1]
	if identify(h.Revisions) != decided {
		return nil, l.historyChangedError(ours.Version)
	}
	return h, nil
}

// signRecord writes name, namespace and journal fields into a record to identify the run
// that writes it.
func (l *Lock) signRecord(rec *Record) {
	l.inProgress.Store(0) // it may be that of a run which couldn't record its end
	rec.Name, rec.Namespace = l.name, l.store.namespace
	if rec.Journal == nil {
		rec.Journal = &Journal{}
	}
	rec.Journal.Run = l.holder.Run
	if rec.Journal.Attempt == "" {
		rec.Journal.Attempt = l.holder.Run
	}
	rec.Journal.Interrupted = false
	rec.Journal.Holder = l.holder.ProcessDescription
	rec.Journal.Process = string(l.holder.process)
	rec.Journal.Leased = l.hasLease()
	now := helmtime.Now()
	if rec.Info.LastDeployed.IsZero() {
		rec.Info.LastDeployed = now
	}
	if rec.Info.FirstDeployed.IsZero() {
		rec.Info.FirstDeployed = now
	}
}

// history reads the history under the lock, where an outage may come in the middle of a run.
func (l *Lock) history(ctx context.Context) (h *History, err error) {
	err = retry(ctx, func(ctx context.Context) (err error) {
		h, err = l.store.History(ctx, l.name)
		return err
	})
	return h, err
}

// historyAsDecided reads the history. The error is a *HistoryChangedError unless it is
// the one that the decision was based on.
func (l *Lock) historyAsDecided(ctx context.Context, revision int, decided Identity) (*History, error) {
	h, err := l.history(ctx)
	if err != nil {
		return nil, err
	}
	if h.identity != decided {
		return nil, l.historyChangedError(revision)
	}
	return h, nil
}

// ConfirmHistory confirms that a release is still as it was decided on, for runs that
// write no record before they change something. The error is a *HistoryChangedError if it
// isn't, or a *LockLostError.
func (l *Lock) ConfirmHistory(ctx context.Context, revision int, decided Identity) error {
	if err := l.checkHeld(); err != nil {
		return err
	}
	_, err := l.historyAsDecided(ctx, revision, decided)
	return err
}

// undoBegin tries to remove what a failed Begin has written. A record that stays is
// pending and signed, so the next run recovers it.
func (l *Lock) undoBegin(ctx context.Context, next *Record, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	if next.stored.uid == "" {
		next.stored.uid = l.storedUID(ctx, next)
	}
	errs := []error{err}
	if next.stored.uid != "" {
		errs = append(errs, l.store.deleteSecret(ctx, SecretName(next.Name, next.Version), string(next.stored.uid)))
	}
	if enc, ofEncoding := encode(next); ofEncoding == nil {
		errs = append(errs, l.store.deleteParts(ctx, next.Name, next.Version, enc.refs()))
	}
	next.stored = stored{}
	return errors.Join(errs...)
}

// storedUID returns the UID of the record of a failed Begin if it was stored
// nevertheless; empty otherwise, and when the server can't be asked.
func (l *Lock) storedUID(ctx context.Context, next *Record) types.UID {
	rec, _, err := l.store.read(ctx, next.Name, next.Version)
	if err != nil || rec == nil || rec.Journal == nil || rec.Journal.Run != l.holder.Run {
		return ""
	}
	return rec.stored.uid
}

func (l *Lock) pendingError(revision int, status helmrelease.Status) *PendingError {
	return &PendingError{Namespace: l.store.namespace, Name: l.name, Revision: revision, Status: status, Grace: l.opts.Grace}
}

func (l *Lock) historyChangedError(revision int) *HistoryChangedError {
	return &HistoryChangedError{Namespace: l.store.namespace, Name: l.name, Revision: revision}
}
