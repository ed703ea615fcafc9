package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"deployer/internal/kube"
)

// A recordPatch is a change of a stored record of any tool. All else stays as it is, also what only other tools
// understand.
type recordPatch struct {
	status      helmrelease.Status
	description string // empty: it stays
}

// patchRecord tries once to change a record that was read. errRetry means that it has to be read again.
func (s *Store) patchRecord(ctx context.Context, rec *Record, secret *corev1.Secret, change *recordPatch) error {
	patched, err := patchSecret(secret, rec.stored.has(labelBody), change)
	if err != nil {
		return &CorruptError{Namespace: secret.Namespace, Secret: secret.Name, Reason: "its content is damaged", Err: err}
	}
	_, err = s.write(ctx, patched)
	switch {
	case kube.IsConflict(err):
		return errRetry
	case apierrors.IsNotFound(err):
		return nil
	}
	return err
}

// patchSecret returns the Secret of a record with a change. isSplit says that the body is in parts.
func patchSecret(secret *corev1.Secret, isSplit bool, change *recordPatch) (*corev1.Secret, error) {
	out := secret.DeepCopy()
	info := map[string]any{"status": change.status}
	if change.description != "" {
		info["description"] = change.description
		if isSplit { // the description of its head has a suffix
			info["description"] = change.description + largeSuffix
		}
	}
	text, err := editInfo(secret.Data[dataKey], info)
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

// editInfo changes fields of info in the JSON of data.release. All else stays as it is, also fields unknown to our types.
func editInfo(text []byte, edits map[string]any) ([]byte, error) {
	data, err := unpack(text)
	if err != nil {
		return nil, err
	}
	var record, info map[string]json.RawMessage
	err = json.Unmarshal(data, &record)
	if err == nil {
		err = json.Unmarshal(record["info"], &info)
	}
	if err != nil {
		return nil, err
	}
	if info == nil {
		return nil, errors.New("it has no info")
	}
	for key, value := range edits {
		if info[key], err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	if record["info"], err = json.Marshal(info); err != nil {
		return nil, err
	}
	packed, _, err := pack(record)
	if err != nil {
		return nil, err
	}
	return toText(packed), nil
}
