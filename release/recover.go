package release

import (
	"cmp"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"deployer/internal/kube"
)

// A Recovered is a revision that a dead run left unfinished, and that is now recorded as
// failed.
type Recovered struct {
	Revision int
	Was      helmrelease.Status
	Holder   string        // the run that died; empty for other tools
	Step     string        // that it was in; empty if it never said
	Age      time.Duration // since it was last written, by the server's clock; 0 when that wasn't needed
}

// String writes it for people.
func (s Recovered) String() string {
	who := cmp.Or(s.Holder, "another tool")
	where := "before its first step"
	if s.Step != "" {
		where = "in step " + s.Step
	}
	if s.Holder == "" {
		where = "at an unknown point"
	}
	return fmt.Sprintf("revision %d was left %s by %s, interrupted %s", s.Revision, s.Was, who, where)
}

// Recover records as failed what dead runs left pending or uninstalling, and returns the
// resulting history. While this run holds the Lease, no other run of deployer is alive.
// For records of other tools, and of runs without a Lease, that is only assumed after
// LockOptions.Grace, by the server's clock, or with LockOptions.TakeoverPending; or if there is a later revision:
// whoever made it has gone past the pending one, as `helm rollback` does, and Helm looks at the latest one alone.
// Otherwise the error is a *PendingError. An error for which kube.IsRefused comes with the history, in which what admission
// has refused to record is as it was.
func (l *Lock) Recover(ctx context.Context) (*History, []Recovered, error) {
	if err := l.checkHeld(); err != nil {
		return nil, nil, err
	}
	h, err := l.history(ctx)
	if err != nil {
		return nil, nil, err
	}
	unfinished := slices.DeleteFunc(slices.Clone(h.Revisions), func(s Summary) bool { return !isUnfinished(s.Status) })
	var all []Recovered
	var refused error
	for _, s := range unfinished {
		recovered, err := l.recoverRevision(ctx, s.Revision, s.Revision < h.Latest().Revision)
		switch {
		case kube.IsRefused(err):
			refused = errors.Join(refused, err)
		case err != nil:
			return nil, all, err
		}
		if recovered != nil {
			all = append(all, *recovered)
		}
	}
	if len(unfinished) > 0 { // perhaps only a label was corrected
		if h, err = l.history(ctx); err != nil {
			return nil, all, err
		}
	}
	return h, all, refused
}

// recoverRevision recovers one unfinished revision; nil, nil when it needs nothing.
func (l *Lock) recoverRevision(ctx context.Context, revision int, passed bool) (out *Recovered, err error) {
	err = retry(ctx, func(ctx context.Context) error {
		out = nil
		rec, secret, err := l.store.read(ctx, l.name, revision)
		if err != nil || rec == nil {
			return err
		}
		if !isUnfinished(rec.Info.Status) {
			// Somebody changed the label by hand; Helm, too, uses the record.
			return l.store.patchRecord(ctx, secret, rec.Info.Status, "")
		}
		dead, err := l.abandonedRun(ctx, rec, passed)
		if dead == nil || err != nil {
			return err
		}
		description := l.recoveryDescription(dead, rec)
		if rec.Journal == nil {
			err = l.store.patchRecord(ctx, secret, helmrelease.StatusFailed, description)
		} else {
			rec.Info.Status, rec.Info.Description, rec.Journal.Interrupted = helmrelease.StatusFailed, description, true
			err = l.replace(ctx, rec)
		}
		if err != nil {
			return err
		}
		out = dead
		_ = l.store.deleteJournal(ctx, rec) // trimming does that, too
		return nil
	})
	return out, err
}

// abandonedRun describes the run that wrote rec if it is dead, or passed: there is a later revision. nil, nil means that the
// record needs no recovery. The error is a *PendingError if the run may be alive.
func (l *Lock) abandonedRun(ctx context.Context, rec *Record, passed bool) (*Recovered, error) {
	out := &Recovered{Revision: rec.Version, Was: rec.Info.Status}
	if j := rec.Journal; j != nil {
		out.Holder, out.Step = j.Holder, j.Step
		if j.Run == l.holder.Run || process(j.Process).isDead() {
			return out, nil
		}
		if l.hasLease() && j.Leased {
			if l.waited {
				return out, nil
			}
			// Nobody had the Lease, so somebody may have deleted it to stop the run, which notices that at its
			// next heartbeat.
			return out, kube.Sleep(ctx, l.opts.Renew)
		}
	} else if rec.Info.Status == helmrelease.StatusUninstalling {
		return nil, nil // Helm leaves this after every failed uninstall, and continues from it
	}
	if l.opts.TakeoverPending || passed {
		return out, nil
	}
	now, err := l.store.ServerTime(ctx)
	if err != nil {
		return nil, err
	}
	if out.Age = now.Sub(rec.stored.written); out.Age >= l.opts.Grace {
		return out, nil
	}
	pending := l.pendingError(rec.Version, rec.Info.Status)
	pending.Holder, pending.Age = out.Holder, out.Age
	return nil, pending
}

func (l *Lock) recoveryDescription(s *Recovered, rec *Record) string {
	var b strings.Builder
	switch {
	case s.Was == helmrelease.StatusUninstalling:
		b.WriteString("Uninstall failed: interrupted")
	case rec.Journal == nil:
		b.WriteString("failed: interrupted, or given up")
	default:
		b.WriteString("failed: interrupted")
	}
	if s.Step != "" {
		b.WriteString(" in step " + s.Step)
	}
	if s.Holder != "" {
		b.WriteString(" (run by " + s.Holder + ")")
	}
	fmt.Fprintf(&b, "; recovered by deployer on %s", l.holder.ProcessDescription)
	return b.String()
}

// patchRecord tries once to change the status of a record of any tool whose Secret was read, and its description unless
// that is empty. All else stays as it is, also what only other tools understand. errRetry means that it has to be read again.
func (s *Store) patchRecord(ctx context.Context, secret *corev1.Secret, status helmrelease.Status, description string) error {
	patched, err := patchSecret(secret, status, description)
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

// patchSecret returns the Secret of a record with another status, and another description unless that is empty.
func patchSecret(secret *corev1.Secret, status helmrelease.Status, description string) (*corev1.Secret, error) {
	out := secret.DeepCopy()
	info := map[string]any{"status": status}
	if description != "" {
		info["description"] = description
		if hasBundle(bundlesOf(secret.Labels, parseRevision(secret.Labels["version"])), labelBody) { // then the head's has a suffix
			info["description"] = description + largeSuffix
		}
	}
	text, err := editInfo(secret.Data[dataKey], info)
	if err == nil && len(text) > maxSecret { // it has no room for another description
		delete(info, "description")
		text, err = editInfo(secret.Data[dataKey], info)
	}
	if err != nil {
		return nil, err
	}
	out.Data[dataKey] = text
	out.Labels["status"] = status.String()
	out.Labels["modifiedAt"] = fmt.Sprint(time.Now().Unix())
	if description != "" && out.Annotations[annotationUpdated] != "" {
		out.Annotations[annotationDescription] = truncate(description, maxDescription)
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
	if err == nil && base64.StdEncoding.EncodedLen(len(packed)) > maxSecret {
		packed, _, err = packAt(gzip.BestCompression, record)
	}
	if err != nil {
		return nil, err
	}
	return toText(packed), nil
}
