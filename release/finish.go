package release

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/internal/kube"
)

// finishTimeout suffices to record an end after the run was stopped, and is shorter than the
// time that CI systems leave between SIGTERM and SIGKILL.
const finishTimeout = 10 * time.Second

// withTimeToFinish returns a context that ends finishTimeout after ctx, or after now if ctx has ended.
func withTimeToFinish(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := kube.WithGracePeriod(ctx, finishTimeout)
	if out.Err() == nil {
		return out, cancel
	}
	cancel()
	return context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
}

func (l *Lock) save(ctx context.Context, rec *Record) error {
	err := l.write(ctx, rec)
	var lost *LockLostError
	if errors.As(err, &lost) {
		l.cancel(lost)
	}
	return err
}

// Finish records how a revision ended: deployed, failed, or another status that isn't
// pending. The description of a failure is cut to 1 KiB. Finish also works for a short time after
// ctx has ended; before that, it outlasts a slow or restarting API server. A deployed
// revision is recorded before older ones become superseded, so there is always a deployed one. A
// record that somebody has deleted is written again, with a warning. If another run has taken
// over, nothing is written, and the error is a *LockLostError. It is also a *LockLostError if
// another tool has recorded a later revision: then the record becomes failed. After a success it deletes the
// revisions that are more than LockOptions.MaxHistory; if that fails, it only warns, because the next run does it.
func (l *Lock) Finish(ctx context.Context, rec *Record, status helmrelease.Status, description string) error {
	all, err := l.finish(ctx, rec, status, description)
	if err == nil && all != nil && status == helmrelease.StatusDeployed {
		if err := l.store.trim(ctx, all, l.opts.MaxHistory); err != nil {
			l.opts.Warn("removing old revisions: " + err.Error())
		}
	}
	return err
}

// finish is Finish without deleting any revision. It also lists the Secrets of the release as they are then; nil if
// they can't be listed.
func (l *Lock) finish(ctx context.Context, rec *Record, status helmrelease.Status, description string) (*listing, error) {
	if isUnfinished(status) {
		return nil, fmt.Errorf("finishing release %s/%s: %s is not a final status", l.store.namespace, l.name, status)
	}
	// No check of the lock is needed: the write only replaces our own version of the
	// record.
	rec.Info.Status = status
	rec.Info.Description = description
	if status == helmrelease.StatusFailed {
		rec.Info.Description = truncate(description, maxDescription)
	}
	ctx, cancel := withTimeToFinish(ctx)
	defer cancel()
	ctx = kube.WithoutWriteHook(ctx)
	listed, err := l.saveAndList(ctx, rec)
	if err != nil {
		return nil, err
	}
	defer l.inProgress.Store(0)
	var tidying sync.WaitGroup
	defer tidying.Wait()
	if listed != nil { // it needn't be deleted again
		listed.parts = slices.DeleteFunc(listed.parts, func(p metav1.PartialObjectMetadata) bool { return p.UID == rec.stored.journal })
	}
	written := *rec                                                 // which may be written once more meanwhile
	tidying.Go(func() { _ = l.store.deleteJournal(ctx, &written) }) // if it stays, it goes with the record, or with the next trimming
	if listed == nil || rec.Info.Status == helmrelease.StatusFailed {
		return listed, nil
	}
	if later := listed.later(rec.Version); later != nil && l.inProgress.Load() == int64(rec.Version) {
		overtaken := l.overtakenError(later.Revision, later.Status.String())
		rec.Info.Status, rec.Info.Description = helmrelease.StatusFailed, overtaken.Why
		return nil, errors.Join(overtaken, l.save(ctx, rec))
	}
	if rec.Info.Status == helmrelease.StatusDeployed {
		l.supersede(ctx, rec.Version, listed)
	}
	return listed, nil
}

// saveAndList writes the last state of rec and lists the Secrets of the release at the same time.
// If they can't be listed, also afterwards, it warns the user and returns nil. For a record with parts it
// always lists again, because the first list may lack parts that were just written.
func (l *Lock) saveAndList(ctx context.Context, rec *Record) (*listing, error) {
	var out *listing
	var listErr error
	list := func() {
		ctx, cancel := context.WithTimeout(ctx, maxRequestTime)
		defer cancel()
		out, listErr = l.store.list(ctx, l.name, ownerParts, ownerHelm)
	}
	var listed sync.WaitGroup
	listed.Go(list)
	err := l.save(ctx, rec)
	listed.Wait()
	if err != nil {
		return nil, err
	}
	if len(rec.stored.bundles) > 0 || out == nil {
		list()
	}
	if out == nil {
		l.opts.Warn(fmt.Sprintf("older revisions couldn't be marked superseded: %v", listErr))
		return nil, nil
	}
	for i := range out.heads {
		if out.heads[i].Revision == rec.Version {
			out.heads[i].Status = rec.Info.Status
		}
	}
	return out, nil
}

// supersede marks deployed revisions older than newest as superseded. Failures are only
// warnings: if two revisions are deployed, the newer one counts.
func (l *Lock) supersede(ctx context.Context, newest int, of *listing) {
	for i := range of.heads {
		s := &of.heads[i]
		if s.Revision >= newest || s.Status != helmrelease.StatusDeployed {
			continue
		}
		if err := l.supersedeOne(ctx, s); err != nil {
			l.opts.Warn(fmt.Sprintf("revision %d couldn't be marked superseded: %v", s.Revision, err))
			continue
		}
		s.Status = helmrelease.StatusSuperseded
	}
}

// supersedeOne marks one revision. It reads its Secret, unless that was read before and hasn't changed.
func (l *Lock) supersedeOne(ctx context.Context, of *Summary) error {
	return retry(ctx, func(ctx context.Context) (err error) {
		secret := l.store.deployed.Swap(nil)
		if secret == nil || string(secret.UID) != of.UID || secret.ResourceVersion != of.resourceVersion {
			secret, err = l.store.getSecret(ctx, SecretName(l.name, of.Revision))
		}
		if apierrors.IsNotFound(err) || err == nil && secret.Labels["status"] != helmrelease.StatusDeployed.String() {
			return nil // another tool may have changed or deleted it
		}
		if err != nil {
			return err
		}
		return l.store.patchRecord(ctx, secret, helmrelease.StatusSuperseded, "")
	})
}
