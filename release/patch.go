package release

import (
	"context"
	"fmt"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A recordPatch is a change of some fields of a stored record. All else stays as it is,
// also what only other tools understand.
type recordPatch struct {
	status      helmrelease.Status
	description string // empty: it stays
	interrupted bool   // true: the journal says so from now on
}

// edits returns the fields of the record that change.
func (a *recordPatch) edits(large bool) map[string]map[string]any {
	info := map[string]any{"status": a.status}
	if a.description != "" {
		info["description"] = a.description
		if large { // the description of its head has a suffix
			info["description"] = a.description + largeSuffix
		}
	}
	edits := map[string]map[string]any{"info": info}
	if a.interrupted {
		edits["deployer"] = map[string]any{"interrupted": true}
	}
	return edits
}

// patchRecord changes some fields of a stored record and leaves the rest as it is. It
// calls allowed with the current record before each try. If that is false, the record stays as it is.
func (s *Store) patchRecord(ctx context.Context, name string, revision int, change recordPatch, allowed func(*Record, *corev1.Secret) (bool, error)) error {
	return retry(ctx, func(ctx context.Context) error {
		rec, secret, err := s.read(ctx, name, revision)
		if err != nil || rec == nil {
			return err // nothing to change
		}
		if ok, err := allowed(rec, secret); !ok || err != nil {
			return err
		}
		amended, err := amendSecret(secret, rec, &change, nil)
		if err != nil {
			return &CorruptError{Namespace: secret.Namespace, Secret: secret.Name, Reason: "its content is damaged", Err: err}
		}
		_, err = s.write(ctx, amended)
		switch {
		case apierrors.IsConflict(err):
			return errRetry
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("writing Secret/%s/%s: %w", secret.Namespace, secret.Name, err)
		}
		return nil
	})
}

// amendSecret returns the Secret of a record with a change. known is a packed manifest that the record may have; nil for
// none.
func amendSecret(secret *corev1.Secret, rec *Record, change *recordPatch, known *packedManifest) (*corev1.Secret, error) {
	out := secret.DeepCopy()
	text, err := editJSON(secret.Data[dataKey], change.edits(rec.stored.has(labelParts)), known)
	if err != nil {
		return nil, err
	}
	out.Data[dataKey] = text
	out.Labels["status"] = change.status.String()
	out.Labels["modifiedAt"] = fmt.Sprint(time.Now().Unix())
	if change.description != "" && out.Annotations[annotationUpdated] != "" {
		out.Annotations[annotationDescription] = truncate(change.description, maxDescription)
	}
	return out, nil
}
