package release

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"deployer/internal/kube"
)

// write stores rec: it creates the Secret, or replaces the version that rec was read from
// or written to. A repetition after a lost answer has no further effect. If somebody else
// has written the Secret, the error is a *LockLostError for a record that this run has begun,
// and otherwise a *HistoryChangedError.
func (l *Lock) write(ctx context.Context, rec *Record) error {
	for {
		err := l.writeWithParts(ctx, rec, func(enc *encoded) error {
			return retry(ctx, func(ctx context.Context) error { return l.writeHead(ctx, rec, enc) })
		})
		if err != nil || rec.stored.uid != "" {
			return err
		}
		// Somebody has deleted the head, and the parts go with it: the record is encoded again.
	}
}

// writeWithParts writes a record: first its parts, then by writeHead its head.
func (l *Lock) writeWithParts(ctx context.Context, rec *Record, writeHead func(*encoded) error) error {
	enc, err := encode(rec)
	if err != nil {
		return err
	}
	old := rec.stored
	if err := l.writeParts(ctx, rec, enc); err != nil {
		return err
	}
	err = writeHead(enc)
	if err == nil && rec.stored.uid != "" {
		l.replaceParts(ctx, rec, old)
	}
	return err
}

// writeHead tries once to write the Secret that Helm sees. errRetry means that rec.stored
// was corrected, so another try may succeed.
func (l *Lock) writeHead(ctx context.Context, rec *Record, enc *encoded) error {
	secret := newSecret(rec, enc, time.Now())
	creating := rec.stored.uid == ""
	written, err := l.store.write(ctx, secret)
	switch {
	case err == nil:
		rec.stored.set(written, enc)
		return nil
	case creating && kube.IsAlreadyExists(err), !creating && kube.IsConflict(err):
		return l.checkRefusedWrite(ctx, rec, secret.Name)
	case !creating && apierrors.IsNotFound(err):
		if err := l.askIfHeld(ctx); err != nil {
			return err // a run that has taken over may have uninstalled the release
		}
		l.opts.Warn(fmt.Sprintf("Secret/%s/%s, the record of this run, was deleted during the run; it is written again", secret.Namespace, secret.Name))
		rec.stored = stored{lost: rec.stored.lost + 1}
		return nil
	}
	return err
}

// checkRefusedWrite checks what is stored after the write of a head was refused.
func (l *Lock) checkRefusedWrite(ctx context.Context, rec *Record, secret string) error {
	found, err := l.store.getSecret(ctx, secret)
	if apierrors.IsNotFound(err) {
		return errRetry // which finds that it isn't there
	}
	if err != nil {
		return err
	}
	if found.UID != rec.stored.uid || sha256.Sum256(found.Data[dataKey]) != rec.stored.content {
		current, err := l.store.decodeSecret(ctx, found)
		if err != nil {
			return err
		}
		isOurs := current.Journal != nil && current.Journal.Run == l.holder.Run && !current.Journal.Interrupted // the answer to its write was lost
		if status := current.Info.Status; !isOurs || !isUnfinished(status) && status != rec.Info.Status {
			return l.conflictError(rec, current)
		}
	}
	rec.stored.setVersion(found)
	return errRetry
}

// conflictError is the error for a record that somebody else has written.
func (l *Lock) conflictError(rec, by *Record) error {
	if l.inProgress.Load() != int64(rec.Version) {
		err := l.historyChangedError(rec.Version)
		err.By = "another tool"
		if by.Journal != nil {
			err.By = by.Journal.Holder
		}
		return err
	}
	why := fmt.Sprintf("another client changed its record (revision %d), which is %s now", by.Version, by.Info.Status)
	if by.Info.Description != "" {
		why += ": " + by.Info.Description
	}
	return l.lostError(why)
}

// set records where and how a record is stored.
func (s *stored) set(secret *corev1.Secret, enc *encoded) {
	*s = stored{bundles: enc.refs(), journal: s.journal, lost: s.lost}
	s.setVersion(secret)
}

// setVersion records which version of a Secret a record was read from or written to.
func (s *stored) setVersion(secret *corev1.Secret) {
	s.uid, s.resourceVersion, s.created = secret.UID, secret.ResourceVersion, secret.Labels["createdAt"]
	s.content = sha256.Sum256(secret.Data[dataKey])
}

// replace tries once to replace the version of a record that was read. errRetry
// means that it has to be read again.
func (l *Lock) replace(ctx context.Context, rec *Record) error {
	return l.writeWithParts(ctx, rec, func(enc *encoded) error {
		written, err := l.store.write(ctx, newSecret(rec, enc, time.Now()))
		switch {
		case kube.IsConflict(err), apierrors.IsNotFound(err):
			return errRetry
		case err != nil:
			return err
		}
		rec.stored.set(written, enc)
		return nil
	})
}
