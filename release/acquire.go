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

const (
	// pollsPerDuration is how often a Lease that another run holds is read during its duration.
	pollsPerDuration = 30
	maxPollInterval  = time.Second
)

// acquire gets the Lease, or fails with *BusyError or errNoLease.
func (l *heldLease) acquire(ctx context.Context) (*coordinationv1.Lease, error) {
	began := time.Now()
	var timer leaseTimer
	var announcedRun string
	for held := false; ; {
		found, err := l.createOrReadLease(ctx, held)
		if err != nil {
			return nil, err
		}
		if l.isOurs(found) {
			return found, nil
		}
		if found == nil {
			continue // it was created and deleted between our requests
		}
		held = true
		holder := holderOf(found)
		l.waited = l.waited || holder != nil
		unchanged := timer.unchangedFor(found, time.Now())
		if holder == nil || holder.Process.isDead() || unchanged >= durationOf(found, l.opts.Duration) {
			if err := l.takeOverLease(ctx, found); err != nil {
				return nil, err
			}
			continue // the next read shows who holds it now
		}
		// Even a run that doesn't want to wait waits until it is known whether the holder
		// is alive. Otherwise a dead holder would need manual action.
		if timer.sawRenewal && time.Since(began) >= l.opts.Timeout {
			return nil, &BusyError{Namespace: l.namespace, Name: l.release, Holder: *holder}
		}
		if announcedRun != holder.Run {
			announcedRun = holder.Run
			l.opts.OnWaiting(*holder)
		}
		if kube.Sleep(ctx, min(maxPollInterval, durationOf(found, l.opts.Duration)/pollsPerDuration)) != nil {
			return nil, fmt.Errorf("waiting for release %s/%s, held by %s: %w", l.namespace, l.release, holder, ctx.Err())
		}
	}
}

// createOrReadLease creates the Lease, which then is ours, or reads the one that is there. If held says
// that there was one a moment ago, it reads first, because a waiting run should write nothing.
func (l *heldLease) createOrReadLease(ctx context.Context, held bool) (found *coordinationv1.Lease, err error) {
	name := leaseName(l.release)
	err = retry(ctx, func(ctx context.Context) error {
		if held {
			if found, err = getLease(ctx, l.client, name); err != nil || found != nil {
				return err
			}
		}
		created, createErr := l.client.Create(ctx, newLease(l.namespace, l.release, l.holder, l.opts.Duration), metav1.CreateOptions{})
		refused := l.leaseError(createErr)
		switch {
		case createErr == nil:
			found = created
			return nil
		case refused == nil && !kube.IsAlreadyExists(createErr):
			return fmt.Errorf("creating Lease/%s/%s: %w", l.namespace, name, createErr)
		}
		// It is somebody's, or ours when the answer to the first try was lost.
		found, err = getLease(ctx, l.client, name)
		switch {
		case err != nil || found != nil:
			return err
		case refused != nil:
			return refused
		}
		return errRetry
	})
	if err != nil && !errors.Is(err, errRetry) {
		return nil, err
	}
	return found, nil
}

// takeOverLease takes over a Lease without a living holder. If another run is faster,
// that isn't an error: the next read shows it.
func (l *heldLease) takeOverLease(ctx context.Context, found *coordinationv1.Lease) error {
	lease := found.DeepCopy()
	holder := l.holder
	holder.Since = time.Now()
	writeHolder(lease, l.release, holder, l.opts.Duration)
	transitions := int32(1)
	if found.Spec.LeaseTransitions != nil {
		transitions += *found.Spec.LeaseTransitions
	}
	lease.Spec.LeaseTransitions = &transitions
	err := retry(ctx, func(ctx context.Context) error {
		_, err := l.client.Update(ctx, lease, metav1.UpdateOptions{})
		return err
	})
	switch {
	case err == nil:
		l.holder.Since = holder.Since
		return nil
	case kube.IsConflict(err), apierrors.IsNotFound(err):
		return nil
	}
	if refused := l.leaseError(err); refused != nil {
		return refused
	}
	return fmt.Errorf("taking over Lease/%s/%s: %w", l.namespace, lease.Name, err)
}
