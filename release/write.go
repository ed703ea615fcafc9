package release

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"deployer/internal/kube"
)

// A recordWriter writes the records of one run.
type recordWriter struct {
	store *Store
	lease *heldLease
	warn  func(string)
}

// write stores rec: it creates the Secret, or replaces the version that rec was read from
// or written to. A repetition after a lost answer has no further effect. conflictError
// makes the error for the case that somebody else has written the Secret.
func (w *recordWriter) write(ctx context.Context, rec *Record, conflictError func(by *Record) error) error {
	for {
		enc, err := w.store.encode(rec)
		if err != nil {
			return err
		}
		err = w.writeAs(ctx, rec, enc, conflictError)
		if err != nil || rec.stored.uid != "" {
			return err
		}
		// Somebody has deleted the head, and the parts go with it.
	}
}

// writeAs is write for a record that is encoded already. If its head was deleted,
// rec.stored has no uid afterwards, and the record has to be encoded again.
func (w *recordWriter) writeAs(ctx context.Context, rec *Record, enc *encoded, conflictError func(by *Record) error) error {
	return w.writeWithParts(ctx, rec, enc, func() error {
		return retry(ctx, func(ctx context.Context) error { return w.writeHead(ctx, rec, enc, conflictError) })
	})
}

// writeWithParts writes a record: first its parts, then by writeHead its head.
func (w *recordWriter) writeWithParts(ctx context.Context, rec *Record, enc *encoded, writeHead func() error) error {
	old := rec.stored
	if err := w.writeParts(ctx, rec, enc); err != nil {
		return err
	}
	err := writeHead()
	if err == nil && rec.stored.uid != "" {
		w.replaceParts(ctx, rec, enc, old)
	}
	return err
}

// writeHead tries once to write the Secret that Helm sees. errRetry means that rec.stored
// was corrected, so another try may succeed.
func (w *recordWriter) writeHead(ctx context.Context, rec *Record, enc *encoded, conflictError func(*Record) error) error {
	secret := newSecret(rec, enc, time.Now())
	creating := rec.stored.uid == ""
	written, err := w.store.write(ctx, secret)
	switch {
	case err == nil:
		rec.stored.set(written, enc)
		return nil
	case creating && apierrors.IsAlreadyExists(err), !creating && apierrors.IsConflict(err):
		return w.resolveWriteConflict(ctx, rec, enc, secret, conflictError)
	case !creating && apierrors.IsNotFound(err):
		if err := w.lease.askIfHeld(ctx); err != nil {
			return err // a run that has taken over may have uninstalled the release
		}
		w.warn(fmt.Sprintf("Secret/%s/%s, the record of this run, was deleted during the run; it is written again", secret.Namespace, secret.Name))
		rec.stored = stored{lost: rec.stored.lost + 1}
		return nil
	}
	return err
}

// resolveWriteConflict checks what is stored after the write of a head was refused.
func (w *recordWriter) resolveWriteConflict(ctx context.Context, rec *Record, enc *encoded, refused *corev1.Secret, conflictError func(*Record) error) error {
	found, err := w.store.getSecret(ctx, refused.Name)
	if apierrors.IsNotFound(err) {
		return errRetry // which finds that it isn't there
	}
	if err != nil {
		return err
	}
	if bytes.Equal(found.Data[dataKey], enc.head) && slices.Equal(bundlesOf(found.Labels, rec.Version), enc.refs()) {
		rec.stored.set(&found.ObjectMeta, enc) // only the answer was lost
		return nil
	}
	current, err := w.store.decodeSecret(ctx, found)
	if err != nil {
		return err
	}
	if current.Journal == nil || current.Journal.Run != w.lease.holder.Run || !isUnfinished(current.Info.Status) {
		return conflictError(current)
	}
	// Ours: an earlier write whose answer was lost, or somebody changed labels.
	rec.stored.uid, rec.stored.resourceVersion = found.UID, found.ResourceVersion
	return errRetry
}

// set records where and how a record is stored.
func (s *stored) set(secret *metav1.ObjectMeta, enc *encoded) {
	*s = stored{
		uid: secret.UID, resourceVersion: secret.ResourceVersion, created: secret.Labels["createdAt"],
		bundles: enc.refs(), lost: s.lost,
	}
}

// writeParts writes the parts of a large record that aren't there already.
// Parts are immutable and named by content, so one that exists is right.
func (w *recordWriter) writeParts(ctx context.Context, rec *Record, enc *encoded) error {
	var parts []*corev1.Secret
	for _, b := range enc.bundles {
		if slices.Contains(rec.stored.bundles, b.bundleRef) {
			continue
		}
		for i := range b.parts {
			parts = append(parts, newPart(rec, b, i))
		}
	}
	return kube.ForEach(len(parts), maxParallel, func(i int) error {
		return retry(ctx, func(ctx context.Context) error {
			_, err := w.store.write(ctx, parts[i])
			if apierrors.IsAlreadyExists(err) {
				return nil
			}
			return err
		})
	})
}

// replaceParts deletes the parts that the head no longer refers to, and makes a new head
// the owner of its parts, so that they are deleted with it. Both are repeated by
// TrimHistory, so failures are only warnings.
func (w *recordWriter) replaceParts(ctx context.Context, rec *Record, enc *encoded, old stored) {
	former := slices.DeleteFunc(slices.Clone(old.bundles), func(b bundleRef) bool { return slices.Contains(enc.refs(), b) })
	err := w.store.deleteParts(ctx, rec.Name, rec.Version, former)
	if old.uid == "" {
		err = errors.Join(err, w.ownParts(ctx, rec, enc))
	}
	if err != nil {
		w.warn(fmt.Sprintf("the parts of Secret/%s/%s: %v", rec.Namespace, SecretName(rec.Name, rec.Version), err))
	}
}

// ownParts makes the head the owner of parts that were written before it.
func (w *recordWriter) ownParts(ctx context.Context, rec *Record, enc *encoded) error {
	secrets, err := w.store.secrets()
	if err != nil {
		return err
	}
	owner, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": headAsOwner(rec)}})
	if err != nil {
		return err
	}
	names := partNames(rec.Name, rec.Version, enc.refs()...)
	return kube.ForEach(len(names), maxParallel, func(i int) error {
		_, err := secrets.Patch(ctx, names[i], types.MergePatchType, owner, metav1.PatchOptions{})
		if apierrors.IsForbidden(err) {
			return nil // Helm's permissions may lack patch; TrimHistory and Delete work without it
		}
		return err
	})
}

// replace tries once to replace the version of a record that was read. errRetry
// means that it has to be read again.
func (w *recordWriter) replace(ctx context.Context, rec *Record) error {
	enc, err := w.store.encode(rec)
	if err != nil {
		return err
	}
	return w.writeWithParts(ctx, rec, enc, func() error {
		written, err := w.store.write(ctx, newSecret(rec, enc, time.Now()))
		switch {
		case apierrors.IsConflict(err), apierrors.IsNotFound(err):
			return errRetry
		case err != nil:
			return err
		}
		rec.stored.set(written, enc)
		return nil
	})
}
