package release

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// looks is how often we look at a Lease during its duration.
	looks   = 30
	maxLook = time.Second
)

// acquire gets the Lease, or fails with *BusyError or errNoLease.
func (l *Lock) acquire(ctx context.Context) error {
	began := time.Now()
	var seen watch
	var told string
	for {
		found, err := l.look(ctx)
		if err != nil {
			return err
		}
		if l.isOurs(found) {
			l.lease = found
			return nil
		}
		l.from = nil
		if found == nil {
			continue // it came and went between our requests
		}
		holder := holderOf(found)
		silent := seen.saw(found, time.Now())
		if holder == nil || holder.Process.dead() || silent >= durationOf(found, l.opts.Duration) {
			if err := l.take(ctx, found, holder); err != nil {
				return err
			}
			continue // the next look shows whose it is now
		}
		// Who asked for no waiting still waits until it is known whether the
		// holder lives: otherwise a dead one would need a human.
		if seen.renewed && time.Since(began) >= l.opts.Timeout {
			return &BusyError{Namespace: l.store.namespace, Name: l.name, Holder: *holder}
		}
		if told != holder.Run {
			told = holder.Run
			l.opts.Waiting(*holder)
		}
		if err := pause(ctx, min(maxLook, durationOf(found, l.opts.Duration)/looks)); err != nil {
			return fmt.Errorf("waiting for release %s/%s, held by %s: %w", l.store.namespace, l.name, holder, err)
		}
	}
}

// look reads the Lease, and makes one if there is none: then it is ours.
func (l *Lock) look(ctx context.Context) (found *coordinationv1.Lease, err error) {
	name := leaseName(l.name)
	err = retry(ctx, func(ctx context.Context) error {
		if found, err = getLease(ctx, l.leases, name); err != nil || found != nil {
			return err
		}
		found, err = l.leases.Create(ctx, newLease(l.store.namespace, l.name, l.holder, l.opts.Duration), metav1.CreateOptions{})
		switch {
		case apierrors.IsAlreadyExists(err):
			return errAgain // somebody's, or ours when the answer to the first try was lost
		case apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, "NamespaceTerminating"):
			return fmt.Errorf("%w: %w", errNoLease, err)
		case err != nil:
			return fmt.Errorf("creating Lease/%s/%s: %w", l.store.namespace, name, err)
		}
		return nil
	})
	if errors.Is(err, errAgain) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return found, nil
}

// take writes our name on a Lease that nobody living has. Somebody may be
// faster: that isn't an error, the next look shows it.
func (l *Lock) take(ctx context.Context, found *coordinationv1.Lease, dead *Holder) error {
	lease := found.DeepCopy()
	holder := l.holder
	holder.Since = time.Now()
	claim(lease, l.name, holder, l.opts.Duration)
	transitions := int32(1)
	if found.Spec.LeaseTransitions != nil {
		transitions += *found.Spec.LeaseTransitions
	}
	lease.Spec.LeaseTransitions = &transitions
	err := retry(ctx, func(ctx context.Context) error {
		_, err := l.leases.Update(ctx, lease, metav1.UpdateOptions{})
		return err
	})
	switch {
	case err == nil:
		l.holder.Since = holder.Since
		l.from = dead
		return nil
	case apierrors.IsConflict(err):
		l.from = dead // unless the next look shows that it isn't ours
		return nil
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w: %w", errNoLease, err)
	}
	return fmt.Errorf("taking over Lease/%s/%s: %w", l.store.namespace, lease.Name, err)
}

// beat renews the Lease until Unlock, or until the right is lost.
func (l *Lock) beat(ctx context.Context) {
	tick := time.NewTicker(l.opts.Renew)
	defer tick.Stop()
	last := time.Now() // when the last renewal that succeeded was sent
	for {
		select {
		case <-l.stop:
			return
		case <-tick.C:
		}
		sent := time.Now()
		// After this moment another run may take over, and we must have stopped.
		deadline := last.Add(l.opts.Duration - l.opts.Renew)
		why, err := l.renew(ctx, deadline)
		switch {
		case why != "":
			l.cancel(l.lostError(why))
			return
		case err == nil:
			last = sent
		case time.Now().After(deadline):
			l.cancel(l.lostError(fmt.Sprintf("its Lease couldn't be renewed for %s: %v", time.Since(last).Round(time.Second), err)))
			return
		}
	}
}

// renew sends one heartbeat. A reason why means that the Lease isn't ours any
// more; an error, that we don't know.
func (l *Lock) renew(ctx context.Context, deadline time.Time) (why string, err error) {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	// One heartbeat that hangs must leave time for others.
	ctx, cancelOne := context.WithTimeout(ctx, l.opts.Duration/4)
	defer cancelOne()
	stopped := make(chan struct{})
	defer close(stopped)
	go func() { // Unlock needn't wait for a server that doesn't answer
		select {
		case <-l.stop:
			cancel()
		case <-stopped:
		}
	}()
	l.mu.Lock()
	lease := l.lease.DeepCopy()
	l.mu.Unlock()
	lease.Spec.RenewTime = new(metav1.NewMicroTime(time.Now()))
	updated, err := l.leases.Update(ctx, lease, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		// The answer to an earlier heartbeat was lost, or somebody took over.
		if updated, err = getLease(ctx, l.leases, lease.Name); err == nil && updated != nil && !l.isOurs(updated) {
			if holder := holderOf(updated); holder != nil {
				return "it was taken over by " + holder.String(), nil
			}
			return "its Lease was cleared", nil
		}
	}
	if apierrors.IsNotFound(err) || (err == nil && updated == nil) {
		return "its Lease was deleted", nil
	}
	if err != nil {
		return "", err
	}
	l.mu.Lock()
	l.lease = updated
	l.mu.Unlock()
	return "", nil
}
