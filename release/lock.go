package release

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcoord "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"deployer/internal/kube"
)

const (
	// leaseDuration is how long a holder may fail to renew before others take over:
	// longer than the restart of an API server.
	leaseDuration = 30 * time.Second

	// renewals is the number of heartbeats in leaseDuration. After one heartbeat
	// interval, a second run knows that the first is alive.
	renewals = 10

	// unlockTimeout is for deleting one Lease on a slow API server.
	unlockTimeout = 10 * time.Second
)

// LockOptions say how to lock a release. The zero value doesn't wait for a living holder,
// and takes over from a dead one.
type LockOptions struct {
	Operation string        // what is going to be done, for people: "upgrade to revision 7"
	Timeout   time.Duration // how long to queue behind a living holder
	Duration  time.Duration // 0 means 30 s; how long we may be silent before others take over; at least 1 s, rounded up to seconds
	Renew     time.Duration // 0 means a tenth of Duration; the heartbeat

	// TakeoverPending recovers revisions that other tools left pending, whatever
	// their age. Grace is the age at which they are recovered anyway; 0 means 1 h,
	// and it should be at least the operation's timeout.
	TakeoverPending bool
	Grace           time.Duration

	OnWaiting func(Holder) // called when we begin to wait for somebody; may be nil
	Warn      func(string) // called for what is odd but doesn't stop us; may be nil; from any goroutine
}

func (o LockOptions) withDefaults() LockOptions {
	if o.Duration == 0 {
		o.Duration = leaseDuration
	}
	o.Duration = max(o.Duration, time.Second)
	if o.Renew == 0 {
		o.Renew = o.Duration / renewals
	}
	if o.Grace == 0 {
		o.Grace = time.Hour
	}
	if o.OnWaiting == nil {
		o.OnWaiting = func(Holder) {}
	}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	return o
}

// A Lock is the right to change one release. It must be released with Unlock, also after
// an error.
type Lock struct {
	store  *Store
	name   string
	holder Holder
	opts   LockOptions

	ctx    context.Context // ends when the lock is lost or released
	cancel context.CancelCauseFunc

	stopped        atomic.Bool  // Unlock was called
	writesInFlight atomic.Int32 // changes that are under way
	waited         bool         // another run held the Lease at first

	recoveredHistory *History // as Recover has found it; nil before, and once Begin has used it
	afterFinish      *listing // all Secrets of the release, as Finish has left them; nil before

	lease   heldLease
	renewal renewal
}

// A heldLease is the Lease of a lock.
type heldLease struct {
	client typedcoord.LeaseInterface

	mu      sync.Mutex
	current *coordinationv1.Lease // as we last saw it; nil when we may not use Leases
	renewed time.Time             // when the last heartbeat that succeeded was sent
}

// A renewal sends the heartbeats of a lock.
type renewal struct {
	stop    chan struct{} // closed by Unlock
	running sync.WaitGroup

	sending sync.Mutex // held by who sends a heartbeat
	failing bool       // the last one didn't succeed
}

// Lock locks a release: it takes a Lease and renews it in the background until Unlock. If
// a living run holds the Lease, Lock waits up to opts.Timeout and then fails with
// *BusyError; one heartbeat interval is needed to see that the other is alive. A dead
// holder is replaced: at once if it was a process of this machine, else after its Lease
// was unchanged for the duration that it states. Without permission for Leases, Lock
// warns, and only the Secret of the next revision excludes other runs.
func (s *Store) Lock(ctx context.Context, name string, opts LockOptions) (*Lock, error) {
	if err := ValidateName(name); err != nil {
		return nil, err
	}
	client, err := s.client()
	if err != nil {
		return nil, err
	}
	l := &Lock{
		store: s, name: name, opts: opts.withDefaults(),
		holder:  Holder{Run: newRun(), Who: Who(), Operation: opts.Operation, Since: time.Now(), Process: thisProcess()},
		renewal: renewal{stop: make(chan struct{})},
		lease:   heldLease{client: client.CoordinationV1().Leases(s.namespace)},
	}
	err = l.acquire(ctx)
	if errors.Is(err, errNoLease) {
		l.opts.Warn(fmt.Sprintf("no permission to use Lease/%s/%s, so only the release record keeps other runs out: allow get, create, update and delete of leases.coordination.k8s.io (%v)",
			s.namespace, leaseName(name), err))
	} else if err != nil {
		return nil, err
	}
	l.ctx, l.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	l.lease.renewed = time.Now()
	if l.lease.current != nil {
		l.renewal.running.Go(func() { l.renewUntilUnlock(kube.WithoutWriteHook(context.WithoutCancel(ctx))) })
	}
	return l, nil
}

// newRun makes an identity that no other run has.
func newRun() string { return strings.ToLower(rand.Text()) }

// Context ends when the lock is lost, with a *LockLostError as its cause, or after Unlock.
// It does not end with the context given to Store.Lock, because an interrupted run may
// have to roll back. The run makes all its writes under this context, each between
// BeginWrite and the call of its over function.
func (l *Lock) Context() context.Context { return l.ctx }

// HasLease reports whether this run holds a Lease; if not, only the record keeps others away.
func (l *Lock) HasLease() bool {
	l.lease.mu.Lock()
	defer l.lease.mu.Unlock()
	return l.lease.current != nil
}

// SetOperation changes what the Lease says of the operation, with the next heartbeat.
func (l *Lock) SetOperation(operation string) {
	l.lease.mu.Lock()
	defer l.lease.mu.Unlock()
	if l.lease.current != nil {
		l.lease.current = l.lease.current.DeepCopy()
		l.lease.current.Annotations[annotationOperation] = operation
	}
}

// HadToWait reports whether somebody, alive or dead, held the Lease when this run asked
// for it. A decision made before that may be based on a half-finished run.
func (l *Lock) HadToWait() bool { return l.waited }

// checkHeld returns why the lock is lost; nil while it is held.
func (l *Lock) checkHeld() error {
	var lost *LockLostError
	if errors.As(context.Cause(l.ctx), &lost) {
		return lost
	}
	return nil
}

func (l *Lock) lockLostError(why string) *LockLostError {
	return &LockLostError{Namespace: l.store.namespace, Name: l.name, Why: why}
}

// Unlock gives the right back. It has its own short clock and also works after ctx has
// ended. Called again, it does nothing. An error means that others will wait until the
// Lease expires.
func (l *Lock) Unlock(ctx context.Context) error {
	if l.stopped.Swap(true) {
		return nil
	}
	close(l.renewal.stop)
	l.renewal.running.Wait()
	l.cancel(context.Canceled)
	if l.lease.current == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTimeout)
	defer cancel()
	return l.deleteLease(ctx)
}

// IsLeased reports whether somebody has the Lease of a release, alive or dead. Who may
// not read Leases is told that nobody has.
func (s *Store) IsLeased(ctx context.Context, name string) (bool, error) {
	found, err := s.readLease(ctx, name)
	return found != nil && holderOf(found) != nil, err
}

// readLease reads the Lease of a release; nil without one, and without permission.
func (s *Store) readLease(ctx context.Context, name string) (*coordinationv1.Lease, error) {
	client, err := s.client()
	if err != nil {
		return nil, err
	}
	found, err := getLease(ctx, client.CoordinationV1().Leases(s.namespace), leaseName(name))
	if errors.Is(err, errNoLease) {
		return nil, nil
	}
	return found, err
}

// DeleteDeadLease deletes the Lease of a run that died after deleting the last record of
// its release: no later run would find it. The Lease of a living run stays.
func (s *Store) DeleteDeadLease(ctx context.Context, name string) error {
	if found, err := s.readLease(ctx, name); found == nil || err != nil {
		return err
	}
	lock, err := s.Lock(ctx, name, LockOptions{Operation: "removal of a lock without a release"})
	if errors.As(err, new(*BusyError)) {
		return nil
	}
	if err != nil {
		return err
	}
	return lock.Unlock(ctx)
}

// deleteLease deletes the Lease if it is still ours.
func (l *Lock) deleteLease(ctx context.Context) error {
	name := leaseName(l.name)
	return retry(ctx, func(ctx context.Context) error {
		version := l.lease.current.ResourceVersion
		err := l.lease.client.Delete(ctx, name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &l.lease.current.UID, ResourceVersion: &version},
		})
		switch {
		case err == nil || apierrors.IsNotFound(err):
			return nil
		case apierrors.IsForbidden(err):
			return l.clearHolder(ctx)
		case !apierrors.IsConflict(err):
			return fmt.Errorf("deleting Lease/%s/%s: %w", l.store.namespace, name, err)
		}
		// The conflict comes from a heartbeat whose answer was lost, or from another run.
		found, err := getLease(ctx, l.lease.client, name)
		if err != nil {
			return err
		}
		if !l.isOurs(found) {
			return nil
		}
		l.lease.current = found
		return errRetry
	})
}

// clearHolder removes the holder from the Lease, for accounts that may not delete it.
func (l *Lock) clearHolder(ctx context.Context) error {
	lease := l.lease.current.DeepCopy()
	lease.Spec.HolderIdentity = nil
	_, err := l.lease.client.Update(ctx, lease, metav1.UpdateOptions{})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("clearing Lease/%s/%s: %w", l.store.namespace, lease.Name, err)
}

func (l *Lock) isOurs(lease *coordinationv1.Lease) bool {
	return lease != nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity == l.holder.Run
}
