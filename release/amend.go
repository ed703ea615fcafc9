package release

import "context"

// Amend changes the record of a revision that has ended, such as the outcomes of its
// tests, and returns the stored result. of is the record as it was read; a record of the
// same revision that replaced it isn't changed. edit is called again if somebody else
// changes the record in the meantime; it must not change the status. Like Finish, Amend
// also works for a short time after ctx has ended. The error is a
// *NotFoundError if there is no such revision any more, a *PendingError if it hasn't
// ended, or a *LockLostError.
func (l *Lock) Amend(ctx context.Context, of *Record, edit func(*Record)) (*Record, error) {
	if err := l.lease.checkHeld(); err != nil {
		return nil, err
	}
	ctx, cancel := withTimeToFinish(ctx)
	defer cancel()
	var out *Record
	revision := of.Version
	err := retry(ctx, func(ctx context.Context) error {
		rec, err := l.store.Get(ctx, l.name, revision)
		if err != nil {
			return err
		}
		if rec.stored.uid != of.stored.uid {
			return &NotFoundError{Namespace: l.store.namespace, Name: l.name, Revision: revision}
		}
		if status := rec.Info.Status; isUnfinished(status) {
			return l.pendingError(revision, status)
		}
		edit(rec)
		out = rec
		return l.replace(ctx, rec)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
