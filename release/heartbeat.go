package release

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/internal/kube"
)

// startRenewing renews the Lease that acquire has returned in the background; nil if there is none.
func (l *Lock) startRenewing(ctx context.Context, lease *coordinationv1.Lease) {
	l.current.Store(lease)
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	l.renewed.Store(new(time.Now()))
	if lease != nil {
		l.running.Go(func() {
			l.untilItEnds(func() { _ = l.heartbeat(kube.WithoutWriteHook(ctx)) }) // a lost lock ends its context
		})
	}
}

// nextHeartbeat returns the Lease as a heartbeat writes it over the one that was found.
func (l *Lock) nextHeartbeat(found *coordinationv1.Lease) *coordinationv1.Lease {
	lease := found.DeepCopy()
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, annotationOperation, *l.operation.Load())
	lease.Spec.RenewTime = new(metav1.NewMicroTime(time.Now()))
	return lease
}

// checkHeld returns why the Lease was lost; nil if it wasn't, also after unlock.
func (l *Lock) checkHeld() error {
	var lost *LockLostError
	if errors.As(context.Cause(l.ctx), &lost) {
		return lost
	}
	return nil
}

func (l *Lock) lostError(why string) *LockLostError {
	return &LockLostError{Namespace: l.store.namespace, Name: l.name, Why: why}
}

// Unlock ends the right to change the release. It has its own short clock and also works after ctx has
// ended. Called again, it does nothing. An error means that others will wait until the
// Lease expires.
func (l *Lock) Unlock(ctx context.Context) error {
	if l.unlocked.Swap(true) {
		return nil
	}
	l.cancel(context.Canceled)
	l.running.Wait()
	lease := l.current.Load()
	if lease == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	return l.deleteLease(ctx, lease)
}

// deleteLease deletes the Lease, as it was last seen, if it is still ours.
func (l *Lock) deleteLease(ctx context.Context, lease *coordinationv1.Lease) error {
	return retry(ctx, func(ctx context.Context) error {
		err := l.leases.Delete(ctx, lease.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion},
		})
		switch {
		case err == nil || apierrors.IsNotFound(err):
			return nil
		case apierrors.IsForbidden(err):
			return l.clearHolder(ctx, lease)
		case !kube.IsConflict(err):
			return fmt.Errorf("deleting Lease/%s/%s: %w", l.store.namespace, lease.Name, err)
		}
		// The conflict comes from a heartbeat whose answer was lost, or from another run.
		found, err := getLease(ctx, l.leases, lease.Name)
		if err != nil {
			return err
		}
		if !l.isOurs(found) {
			return nil
		}
		lease = found
		return errRetry
	})
}

// clearHolder removes the holder from the Lease, for accounts that may not delete it.
func (l *Lock) clearHolder(ctx context.Context, lease *coordinationv1.Lease) error {
	lease = lease.DeepCopy()
	lease.Spec.HolderIdentity = nil
	_, err := l.leases.Update(ctx, lease, metav1.UpdateOptions{})
	if err == nil || apierrors.IsNotFound(err) || kube.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("clearing Lease/%s/%s: %w", l.store.namespace, lease.Name, err)
}

func (l *Lock) isOurs(lease *coordinationv1.Lease) bool {
	return lease != nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity == l.holder.Run
}

// untilItEnds calls do at the interval of heartbeats until the lock is lost or unlocked.
func (l *Lock) untilItEnds(do func()) {
	tick := time.NewTicker(l.opts.Renew)
	defer tick.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-tick.C:
			do()
		}
	}
}

// confirmHeld returns nil if the run still holds the Lease. Normally it makes no requests. After a pause
// without heartbeats (a stopped process, a sleeping machine, an unreachable API server) it first sends a
// heartbeat, because another run may have taken over. The error is a *LockLostError, or the reason why the
// Lease can't be renewed.
func (l *Lock) confirmHeld(ctx context.Context) error {
	if err := l.checkHeld(); err != nil || !l.mayBeTakenOver() {
		return err
	}
	return l.askIfHeld(ctx)
}

// askIfHeld is confirmHeld that always sends a heartbeat, if there is a Lease.
func (l *Lock) askIfHeld(ctx context.Context) error {
	if l.current.Load() == nil {
		return l.checkHeld() // only the record protects us
	}
	err := l.heartbeat(kube.WithoutWriteHook(ctx))
	if lost := l.checkHeld(); lost != nil {
		return lost
	}
	return err
}

// mayBeTakenOver reports whether others may have taken over by now, or will soon.
func (l *Lock) mayBeTakenOver() bool {
	limit := l.opts.Duration - l.opts.Renew
	renewed, now := *l.renewed.Load(), time.Now()
	// Both clocks are compared: the monotonic one stops while a machine sleeps, the wall
	// clock doesn't.
	return now.Sub(renewed) > limit || now.Round(0).Sub(renewed.Round(0)) > limit
}

// heartbeat renews the Lease once. The lock is lost if another run holds the Lease. It is
// also lost if the Lease can't be renewed in time while a write of ours is in flight.
func (l *Lock) heartbeat(ctx context.Context) error {
	l.sending.Lock()
	defer l.sending.Unlock()
	if err := l.checkHeld(); err != nil {
		return err
	}
	last, sent := *l.renewed.Load(), time.Now()
	// After the deadline another run may take over, so we must have stopped by then.
	// Without a write in flight, or after a pause, we may still ask whether one has.
	deadline := last.Add(l.opts.Duration - l.opts.Renew)
	if sent.After(deadline) && (l.writesInFlight.Load() == 0 || !l.failing) {
		deadline = sent.Add(l.opts.Duration / 4)
	}
	why, err := l.renew(ctx, deadline)
	l.failing = err != nil
	switch {
	case why != "":
		l.cancel(l.lostError(why))
	case err == nil:
		l.renewed.Store(&sent)
	case l.writesInFlight.Load() > 0 && time.Now().After(deadline):
		l.cancel(l.lostError(fmt.Sprintf("its Lease couldn't be renewed for %s: %v", time.Since(last).Round(time.Second), err)))
	}
	return err
}

// renew sends one heartbeat. why is set if the Lease isn't ours any more; err means that
// this is unknown.
func (l *Lock) renew(ctx context.Context, deadline time.Time) (why string, err error) {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	// A hanging heartbeat must leave time for another one.
	ctx, cancelOne := context.WithTimeout(ctx, l.opts.Duration/4)
	defer cancelOne()
	defer context.AfterFunc(l.ctx, cancel)() // unlock needn't wait for a server that doesn't answer
	lease := l.current.Load()
	for {
		updated, err := l.leases.Update(ctx, l.nextHeartbeat(lease), metav1.UpdateOptions{})
		if kube.IsConflict(err) {
			// The answer to an earlier heartbeat was lost, or somebody took over.
			lease, err = getLease(ctx, l.leases, lease.Name)
			if err != nil {
				return "", err
			}
			if why := l.whyNotOurs(lease); why != "" {
				return why, nil
			}
			continue
		}
		if apierrors.IsNotFound(err) {
			return l.whyNotOurs(nil), nil
		}
		if err != nil {
			return "", err
		}
		l.current.Store(updated)
		return "", nil
	}
}

// whyNotOurs returns why a Lease isn't ours any more; empty when it is.
func (l *Lock) whyNotOurs(found *coordinationv1.Lease) string {
	if found == nil {
		return "its Lease was deleted"
	}
	if l.isOurs(found) {
		return ""
	}
	if holder := holderOf(found); holder != nil {
		return "it was taken over by " + holder.String()
	}
	return "its Lease was cleared"
}
