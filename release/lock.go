package release

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	typedcoord "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

const (
	// LeaseDuration is how long a holder may fail to renew before others take over:
	// longer than the restart of an API server.
	LeaseDuration = 30 * time.Second

	// renewals is the number of heartbeats in LeaseDuration. After one heartbeat
	// interval, a second run knows that the first is alive.
	renewals = 10
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

	// NoLease takes no Lease: only the Secret of the next revision excludes other runs.
	NoLease bool

	// MaxHistory is how many revisions Finish keeps of a release that it records as deployed; 0 keeps all.
	MaxHistory int

	OnWaiting func(Holder) // called when we begin to wait for somebody; may be nil
	Warn      func(string) // called for what is odd but doesn't stop us; may be nil; from any goroutine
}

func (o LockOptions) withDefaults() LockOptions {
	o.Duration = max(cmp.Or(o.Duration, LeaseDuration), time.Second)
	o.Renew = cmp.Or(o.Renew, o.Duration/renewals)
	o.Grace = cmp.Or(o.Grace, time.Hour)
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
//
// Methods that take a record change it, and are called one at a time; all others at any time.
type Lock struct {
	store  *Store
	name   string // of the release
	opts   LockOptions
	holder Holder // this run
	leases typedcoord.LeaseInterface
	waited bool // another run held the Lease at first

	ctx      context.Context // ends when the lock is lost or unlocked, and never before
	cancel   context.CancelCauseFunc
	unlocked atomic.Bool

	noJournal      bool         // Secrets may not be created: the journal goes into the record
	inProgress     atomic.Int64 // the revision that this run has begun; 0 before, and once its end is recorded
	writesInFlight atomic.Int32 // changes of the cluster that are under way

	operation atomic.Pointer[string]               // as the next heartbeat writes it
	current   atomic.Pointer[coordinationv1.Lease] // as we last saw it; nil when we may not use Leases
	renewed   atomic.Pointer[time.Time]            // when the last heartbeat that succeeded was sent

	running sync.WaitGroup // heartbeats and checks; they end with ctx
	sending sync.Mutex     // held while a heartbeat is sent
	failing bool           // the last one didn't succeed
}

// Lock locks a release: it takes a Lease and renews it in the background until Unlock. If
// a living run holds the Lease, Lock waits up to opts.Timeout and then fails with
// *BusyError; one heartbeat interval is needed to see that the other is alive. A dead
// holder is replaced: at once if it was a process of this machine, else after its Lease
// was unchanged for the duration that it states. Without permission for Leases, Lock
// warns, and only the Secret of the next revision excludes other runs. If a quota, a policy,
// or a webhook that denies it or doesn't answer keeps the Lease out, the error says so.
func (s *Store) Lock(ctx context.Context, name string, opts LockOptions) (*Lock, error) {
	if err := ValidateName(name); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	l := &Lock{
		store: s, name: name, opts: opts,
		holder: Holder{Run: newRun(), ProcessDescription: Who(), Operation: opts.Operation, Since: time.Now(), process: thisProcess()},
		leases: s.cluster.Typed().CoordinationV1().Leases(s.namespace),
	}
	l.SetOperation(opts.Operation)
	var acquired *coordinationv1.Lease
	var err error
	if !opts.NoLease {
		acquired, err = l.acquire(ctx)
	}
	if errors.Is(err, errNoLease) {
		opts.Warn(fmt.Sprintf("no permission to use Lease/%s/%s, so only the release record keeps other runs out: allow get, create, update and delete of leases.coordination.k8s.io (%v)",
			s.namespace, leaseName(name), err))
	} else if err != nil {
		return nil, err
	}
	l.startRenewing(context.WithoutCancel(ctx), acquired)
	l.running.Go(func() { l.untilItEnds(func() { l.loseIfOvertaken(l.ctx) }) })
	return l, nil
}

// newRun makes an identity that no other run has.
func newRun() string { return strings.ToLower(rand.Text()) }

// Context ends when the lock is lost, with a *LockLostError as its cause, or after Unlock.
// It does not end with the context given to Store.Lock, because an interrupted run may
// have to roll back. The run makes all its writes under this context. Each begins with
// BeginWrite and ends with the function that it returns.
func (l *Lock) Context() context.Context { return l.ctx }

// hasLease reports whether this run holds a Lease; if not, only the record keeps others away.
func (l *Lock) hasLease() bool { return l.current.Load() != nil }

// SetOperation changes what the Lease says of the operation, with the next heartbeat.
func (l *Lock) SetOperation(operation string) {
	l.operation.Store(&operation)
}

// HadToWait reports whether somebody, alive or dead, held the Lease when this run asked
// for it. A decision made before that may be based on a half-finished run.
func (l *Lock) HadToWait() bool { return l.waited }

// BeginWrite begins a change of the cluster if the run still holds the release, see
// confirmHeld. Call done when the outcome of the change is known. The error is a
// *LockLostError, or the reason why the Lease can't be renewed.
func (l *Lock) BeginWrite(ctx context.Context) (done func(), err error) {
	if err := l.confirmHeld(ctx); err != nil {
		return nil, err
	}
	l.writesInFlight.Add(1)
	return func() { l.writesInFlight.Add(-1) }, nil
}

// IsLeased reports whether a run, alive or dead, holds the Lease of a release; false without
// permission to read Leases.
func (s *Store) IsLeased(ctx context.Context, name string) (bool, error) {
	found, err := s.readLease(ctx, name)
	return found != nil && holderOf(found) != nil, err
}

// readLease reads the Lease of a release; nil without one, and without permission.
func (s *Store) readLease(ctx context.Context, name string) (*coordinationv1.Lease, error) {
	found, err := getLease(ctx, s.cluster.Typed().CoordinationV1().Leases(s.namespace), leaseName(name))
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

// While a run is at work, no later revision may be recorded. Other runs of deployer respect the Lease,
// and most commands of Helm refuse a release whose latest revision is pending. `helm rollback` does
// neither: it makes a new revision and overwrites objects that the run has just applied.
// helm.sh/helm/v3/pkg/action/rollback.go

// loseIfOvertaken gives up the lock if a revision after the one of this run is recorded. What can't be
// read now is found by a later call, or by Finish.
func (l *Lock) loseIfOvertaken(ctx context.Context) {
	revision := l.inProgress.Load()
	if revision == 0 {
		return
	}
	later, err := l.store.getSecret(ctx, SecretName(l.name, int(revision)+1))
	if err == nil && l.inProgress.Load() == revision { // otherwise it may be this run's, as of an undo
		l.cancel(l.overtakenError(int(revision)+1, later.Labels["status"]))
	}
}

// later returns the first revision after one; nil if there is none.
func (l *listing) later(revision int) *Summary {
	for i := range l.heads {
		if l.heads[i].Revision > revision {
			return &l.heads[i]
		}
	}
	return nil
}

func (l *Lock) overtakenError(revision int, status string) *LockLostError {
	return l.lostError(fmt.Sprintf("another tool recorded revision %d, which is %s, during the run", revision, status))
}

// Amend changes the record of a revision that has ended, such as the outcomes of its
// tests, and returns the stored result. of is the record as it was read; a record of the
// same revision that replaced it isn't changed. edit is called again if somebody else
// changes the record in the meantime; it must not change the status. Like Finish, Amend
// also works for a short time after ctx has ended. The error is a
// *NotFoundError if there is no such revision any more, a *PendingError if it hasn't
// ended, or a *LockLostError.
func (l *Lock) Amend(ctx context.Context, of *Record, edit func(*Record)) (*Record, error) {
	if err := l.checkHeld(); err != nil {
		return nil, err
	}
	ctx, cancel := withTimeToFinish(ctx)
	defer cancel()
	var out *Record
	revision := of.Version
	err := retry(ctx, func(ctx context.Context) error {
		rec, err := l.store.Get(ctx, l.name, revision)
		if err != nil {
			return err
		}
		if rec.stored.uid != of.stored.uid {
			return &NotFoundError{Namespace: l.store.namespace, Name: l.name, Revision: revision}
		}
		if status := rec.Info.Status; isUnfinished(status) {
			return l.pendingError(revision, status)
		}
		edit(rec)
		out = rec
		return l.replace(ctx, rec)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
