package release

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/internal/kube"
)

// Helm's Secret is written when a run begins and when it ends. In between the run keeps its journal in a Secret
// of its own, which Helm doesn't list (its owner isn't helm) and Kubernetes deletes with Helm's (owner
// reference). It counts as long as Helm's has the status with which it was written and is of the same run.

const (
	journalType = corev1.SecretType("deployer.io/release.journal.v1")
	journalKey  = "journal" // gzip of JSON
)

// journalName is the name of the Secret with the journal of a revision's run.
func journalName(release string, revision int) string {
	return fmt.Sprintf("%s%s.v%d.journal", partPrefix, release, revision)
}

// A runJournal is what a run has to record between the beginning and the end of its record.
type runJournal struct {
	*Journal
	LastRuns []helmrelease.HookExecution `json:"deployer_runs,omitempty"` // by index of the record's hooks
}

// Save records how far a run has come with a record that this lock has begun: its journal, and the results of
// hooks. The error is a *LockLostError when another run has written the record, or recorded a later revision;
// this run must then stop without further changes. A record that somebody has deleted is written again, with a warning.
func (l *Lock) Save(ctx context.Context, rec *Record) error {
	if err := l.checkHeld(); err != nil {
		return err
	}
	var err error
	var stands bool
	var checking sync.WaitGroup
	as := rec.stored
	checking.Go(func() { stands = l.recordStands(ctx, rec.Version, as) })
	inRecord := l.noJournal || hasBundle(rec.stored.bundles, labelEntries) // which doesn't fit into one Secret
	if !inRecord {
		err = l.writeJournal(ctx, rec)
	}
	checking.Wait()
	if apierrors.IsForbidden(err) || kube.IsRefused(err) { // an uninstall needs no permission to create a Secret
		l.noJournal, inRecord, err = true, true, nil
	}
	if err == nil && (inRecord || !stands) {
		err = l.save(ctx, rec)
	}
	if err == nil && l.noJournal && rec.stored.journal != "" && l.store.deleteJournal(ctx, rec) == nil {
		rec.stored.journal = "" // what it says is older than the record
	}
	return cmp.Or(err, l.checkHeld())
}

// recordStands reports whether the record of a revision is as this run has left it. It gives up the lock if a later revision is
// recorded. What can't be read now is found by a later call, or by Finish.
func (l *Lock) recordStands(ctx context.Context, revision int, as stored) bool {
	listed, _ := l.store.list(ctx, l.name, ownerHelm)
	if listed == nil {
		return true
	}
	if later := listed.later(revision); later != nil && l.inProgress.Load() == int64(revision) {
		l.cancel(l.overtakenError(later.Revision, later.Status.String()))
	}
	for _, head := range listed.heads {
		if head.UID == string(as.uid) && head.resourceVersion == as.resourceVersion {
			return true
		}
	}
	return false
}

// writeJournal writes the Secret with the journal of a run. Only the run whose record it belongs to writes it, and a
// reader compares the runs of both, so it needs no precondition.
func (l *Lock) writeJournal(ctx context.Context, rec *Record) error {
	saved := runJournal{Journal: rec.Journal, LastRuns: lastRuns(rec.Hooks)}
	packed, _, err := pack(saved)
	if err != nil {
		return err
	}
	return retry(ctx, func(ctx context.Context) error {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Name:      journalName(rec.Name, rec.Version),
				Namespace: rec.Namespace,
				UID:       rec.stored.journal,
				Labels: map[string]string{
					"name": rec.Name, "owner": ownerParts, "status": rec.Info.Status.String(), "version": strconv.Itoa(rec.Version),
				},
				OwnerReferences: headAsOwner(rec),
			},
			Type: journalType,
			Data: map[string][]byte{journalKey: packed},
		}
		written, err := l.store.write(ctx, secret)
		switch {
		case err == nil:
			rec.stored.journal = written.UID
			return nil
		case kube.IsAlreadyExists(err): // the answer to an earlier try was lost, or an earlier run has left it
			found, err := l.store.getSecret(ctx, secret.Name)
			if err == nil {
				rec.stored.journal = found.UID
			}
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
			return errRetry
		case kube.IsConflict(err), apierrors.IsNotFound(err):
			rec.stored.journal = ""
			return errRetry
		}
		return err
	})
}

// readJournal adds the journal of a run that hasn't ended to its record.
func (s *Store) readJournal(ctx context.Context, rec *Record) error {
	if rec.Journal == nil || !isUnfinished(rec.Info.Status) {
		return nil
	}
	secret, err := s.getSecret(ctx, journalName(rec.Name, rec.Version))
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	bad := func(err error) error {
		return &CorruptError{Namespace: secret.Namespace, Secret: secret.Name, Reason: "its content is damaged", Err: err}
	}
	data, err := decompress(secret.Data[journalKey], maxSingleSecretJSON)
	if err != nil {
		return bad(err)
	}
	saved := runJournal{Journal: &Journal{}}
	if err := json.Unmarshal(data, &saved); err != nil {
		return bad(err)
	}
	if saved.Run != rec.Journal.Run || secret.Labels["status"] != rec.Info.Status.String() {
		return nil
	}
	rec.Journal = saved.Journal
	setLastRuns(rec.Hooks, saved.LastRuns)
	rec.stored.journal = secret.UID
	if written := lastWrite(&secret.ObjectMeta); written.After(rec.stored.written) {
		rec.stored.written = written
	}
	return nil
}

// deleteJournal deletes the Secret with the journal of a run, if it has one.
func (s *Store) deleteJournal(ctx context.Context, rec *Record) error {
	if rec.stored.journal == "" {
		return nil
	}
	return s.deleteSecret(ctx, journalName(rec.Name, rec.Version), string(rec.stored.journal))
}

func lastRuns(hooks []*helmrelease.Hook) (runs []helmrelease.HookExecution) {
	for _, hook := range hooks {
		runs = append(runs, hook.LastRun)
	}
	return runs
}

func setLastRuns(hooks []*helmrelease.Hook, runs []helmrelease.HookExecution) {
	for i, hook := range hooks[:min(len(hooks), len(runs))] {
		hook.LastRun = runs[i]
	}
}
