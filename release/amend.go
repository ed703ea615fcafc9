package release

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Amend changes the record of a revision that has ended, such as the outcomes of its
// tests, and returns the stored result. of is the record as it was read; a record of the
// same revision that replaced it isn't changed. edit is called again if somebody else
// changes the record in the meantime; it must not change the status. Like Finish, Amend
// has its own short timeout, so it also works after ctx has ended. The error is a
// *NotFoundError if there is no such revision any more, a *PendingError if it hasn't
// ended, or a *LockLostError.
func (l *Lock) Amend(ctx context.Context, of *Record, edit func(*Record)) (*Record, error) {
	if err := l.checkHeld(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
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
			return &PendingError{Namespace: l.store.namespace, Name: l.name, Revision: revision, Status: status, Grace: l.opts.Grace}
		}
		edit(rec)
		out = rec
		return l.replaceRecord(ctx, rec)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// replaceRecord tries once to replace the version of a record that was read. errRetry
// means that it has to be read again.
func (l *Lock) replaceRecord(ctx context.Context, rec *Record) error {
	enc, err := l.store.encode(rec)
	if err != nil {
		return err
	}
	secrets, err := l.store.secrets()
	if err != nil {
		return err
	}
	old := rec.stored
	if err := l.writeParts(ctx, rec, enc); err != nil {
		return err
	}
	written, err := l.store.write(ctx, newSecret(rec, enc, time.Now()))
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return errRetry
	case err != nil:
		return fmt.Errorf("writing Secret/%s/%s: %w", rec.Namespace, SecretName(rec.Name, rec.Version), err)
	}
	rec.stored.set(written, enc)
	l.replaceParts(ctx, secrets, rec, enc, old)
	return nil
}
