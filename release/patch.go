package release

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"deployer/internal/kube"
)

// A recordPatch is a change of some fields of a stored record. All else stays as it is,
// also what only other tools understand.
type recordPatch struct {
	status      helmrelease.Status
	description string // empty: it stays
	interrupted bool   // true: the journal says so from now on
}

// edits returns the fields of the record that change.
func (p *recordPatch) edits(isSplit bool) map[string]map[string]any {
	info := map[string]any{"status": p.status}
	if p.description != "" {
		info["description"] = p.description
		if isSplit { // the description of its head has a suffix
			info["description"] = p.description + largeSuffix
		}
	}
	edits := map[string]map[string]any{"info": info}
	if p.interrupted {
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
		patched, err := patchSecret(secret, rec.stored.has(labelBody), &change)
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
	})
}

// patchSecret returns the Secret of a record with a change. isSplit says that the body is in parts.
func patchSecret(secret *corev1.Secret, isSplit bool, change *recordPatch) (*corev1.Secret, error) {
	out := secret.DeepCopy()
	text, err := editJSON(secret.Data[dataKey], change.edits(isSplit))
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

// editJSON changes fields of members in the JSON of data.release. All else stays as it
// is, also fields unknown to our types. It adds no member; a record without info is an error.
func editJSON(text []byte, edits map[string]map[string]any) ([]byte, error) {
	data, err := unpack(text)
	if err != nil {
		return nil, err
	}
	record, err := editMembers(data, edits)
	if err != nil {
		return nil, err
	}
	packed, _, err := pack(record)
	if err != nil {
		return nil, err
	}
	return toText(packed), nil
}

// editMembers reads the members of a record's JSON and changes fields of them. Members that are missing stay
// missing; a missing info is an error.
func editMembers(data []byte, edits map[string]map[string]any) (map[string]json.RawMessage, error) {
	var record map[string]json.RawMessage
	if err := json.Unmarshal(data, &record); err != nil {
		return nil, err
	}
	for member, set := range edits {
		if record[member] == nil && member != "info" {
			continue
		}
		var err error
		if record[member], err = editMember(record[member], set); err != nil {
			return nil, fmt.Errorf("%s: %w", member, err)
		}
	}
	return record, nil
}

func editMember(data json.RawMessage, set map[string]any) (json.RawMessage, error) {
	var member map[string]json.RawMessage
	if err := json.Unmarshal(data, &member); err != nil {
		return nil, err
	}
	if member == nil {
		return data, nil // null
	}
	for key, value := range set {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		member[key] = text
	}
	return json.Marshal(member)
}
