package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcoord "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"deployer/internal/kube"
	"deployer/internal/program"
)

const (
	annotationWho       = prefix + "who"
	annotationOperation = prefix + "operation"
	annotationProcess   = prefix + "process"

	// maxDuration limits how long a Lease is observed before it is taken over, whatever
	// duration it states.
	maxDuration = 5 * time.Minute
)

// leaseName is always valid: a release's name is a DNS subdomain of at most 53
// characters (ValidateName), and that is what a Lease's name has to be.
func leaseName(release string) string { return "deployer-" + release }

// newLease returns a Lease that says that holder has the release and will renew it within
// duration.
func newLease(namespace, release string, holder Holder, duration time.Duration) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: leaseName(release), Namespace: namespace}}
	writeHolder(lease, release, holder, duration)
	return lease
}

func writeHolder(lease *coordinationv1.Lease, release string, holder Holder, duration time.Duration) {
	now := metav1.NewMicroTime(holder.Since)
	lease.Labels = map[string]string{
		kube.ManagedByLabel: "deployer",
		prefix + "release":  release,
	}
	lease.Annotations = map[string]string{
		annotationWho:       holder.ProcessDescription,
		annotationOperation: holder.Operation,
		annotationProcess:   string(holder.process),
	}
	lease.Spec.HolderIdentity = &holder.Run
	lease.Spec.LeaseDurationSeconds = new(int32(max(1, (duration+time.Second-1)/time.Second)))
	lease.Spec.AcquireTime, lease.Spec.RenewTime = &now, &now
}

// holderOf returns the holder of a Lease; nil when there is none.
func holderOf(lease *coordinationv1.Lease) *Holder {
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return nil
	}
	h := &Holder{
		Run:                *lease.Spec.HolderIdentity,
		ProcessDescription: cmp.Or(lease.Annotations[annotationWho], *lease.Spec.HolderIdentity),
		Operation:          lease.Annotations[annotationOperation],
		process:            process(lease.Annotations[annotationProcess]),
	}
	if lease.Spec.AcquireTime != nil {
		h.Since = lease.Spec.AcquireTime.Time
	}
	return h
}

// durationOf returns how long the holder of a Lease may fail to renew it.
func durationOf(lease *coordinationv1.Lease, otherwise time.Duration) time.Duration {
	if s := lease.Spec.LeaseDurationSeconds; s != nil && *s > 0 {
		return min(time.Duration(*s)*time.Second, maxDuration)
	}
	return otherwise
}

// A leaseTimer measures how long a Lease has been unchanged, by our own monotonic clock.
// Times in the Lease aren't used, because the clocks of machines differ.
type leaseTimer struct {
	version    string // uid and resourceVersion
	since      time.Time
	sawRenewal bool // it has changed since it was first seen
}

// unchangedFor takes a newly read Lease and returns how long it has been unchanged.
func (t *leaseTimer) unchangedFor(lease *coordinationv1.Lease, now time.Time) time.Duration {
	version := string(lease.UID) + "/" + lease.ResourceVersion
	if version != t.version {
		t.sawRenewal = t.version != ""
		t.version, t.since = version, now
	}
	return now.Sub(t.since)
}

// leaseError returns what an error of a request that writes a Lease means: errNoLease without permission, what to do about it if
// a quota, a policy or a webhook refuses the Lease, and nil if it is another error.
func (l *Lock) leaseError(err error) error {
	switch {
	case apierrors.IsForbidden(err) && kube.DeniedRequest(err.Error()) != nil:
		return fmt.Errorf("%w: %w", errNoLease, err)
	case apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, "NamespaceTerminating"), kube.IsRefused(err):
		return program.WithHint(
			fmt.Errorf("release %[1]s/%[2]s can't be locked: Lease/%[1]s/%[3]s is refused: %[4]w", l.store.namespace, l.name, leaseName(l.name), err),
			"let the quota, policy or webhook admit the Lease; to go on without it, so that only the release record keeps other runs out: --no-lock")
	}
	return nil
}

// errNoLease says that we may not use Leases here.
var errNoLease = errors.New("no permission for leases")

// getLease returns nil without an error if there is no Lease, and errNoLease without
// permission.
func getLease(ctx context.Context, leases typedcoord.LeaseInterface, name string) (*coordinationv1.Lease, error) {
	lease, err := leases.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("%w: %w", errNoLease, err)
	case err != nil:
		return nil, fmt.Errorf("reading Lease %s: %w", name, err)
	}
	return lease, nil
}

const (
	// pollsPerDuration is how often a Lease that another run holds is read during its duration.
	pollsPerDuration = 30
	maxPollInterval  = time.Second
)

// acquire gets the Lease, or fails with *BusyError or errNoLease.
func (l *Lock) acquire(ctx context.Context) (*coordinationv1.Lease, error) {
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
		if holder == nil || holder.process.isDead() || unchanged >= durationOf(found, l.opts.Duration) {
			if err := l.takeOverLease(ctx, found); err != nil {
				return nil, err
			}
			continue // the next read shows who holds it now
		}
		// Even a run that doesn't want to wait waits until it is known whether the holder
		// is alive. Otherwise a dead holder would need manual action.
		if timer.sawRenewal && time.Since(began) >= l.opts.Timeout {
			return nil, &BusyError{Namespace: l.store.namespace, Name: l.name, Holder: *holder}
		}
		if announcedRun != holder.Run {
			announcedRun = holder.Run
			l.opts.OnWaiting(*holder)
		}
		if kube.Sleep(ctx, min(maxPollInterval, durationOf(found, l.opts.Duration)/pollsPerDuration)) != nil {
			return nil, fmt.Errorf("waiting for release %s/%s, held by %s: %w", l.store.namespace, l.name, holder, ctx.Err())
		}
	}
}

// createOrReadLease creates the Lease, which then is ours, or reads the one that is there. If held says
// that there was one a moment ago, it reads first, because a waiting run should write nothing.
func (l *Lock) createOrReadLease(ctx context.Context, held bool) (found *coordinationv1.Lease, err error) {
	name := leaseName(l.name)
	err = retry(ctx, func(ctx context.Context) error {
		if held {
			if found, err = getLease(ctx, l.leases, name); err != nil || found != nil {
				return err
			}
		}
		created, createErr := l.leases.Create(ctx, newLease(l.store.namespace, l.name, l.holder, l.opts.Duration), metav1.CreateOptions{})
		refused := l.leaseError(createErr)
		switch {
		case createErr == nil:
			found = created
			return nil
		case refused == nil && !kube.IsAlreadyExists(createErr):
			return fmt.Errorf("creating Lease/%s/%s: %w", l.store.namespace, name, createErr)
		}
		// It is somebody's, or ours when the answer to the first try was lost.
		found, err = getLease(ctx, l.leases, name)
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
func (l *Lock) takeOverLease(ctx context.Context, found *coordinationv1.Lease) error {
	lease := found.DeepCopy()
	holder := l.holder
	holder.Since = time.Now()
	writeHolder(lease, l.name, holder, l.opts.Duration)
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
		return nil
	case kube.IsConflict(err), apierrors.IsNotFound(err):
		return nil
	}
	if refused := l.leaseError(err); refused != nil {
		return refused
	}
	return fmt.Errorf("taking over Lease/%s/%s: %w", l.store.namespace, lease.Name, err)
}
