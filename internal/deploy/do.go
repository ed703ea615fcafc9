package deploy

import (
	"context"
	"errors"
	"fmt"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"

	"deployer/apply"
	"deployer/internal/kube"
	"deployer/release"
)

// DoOptions say how an operation is carried out. The zero value waits for no
// other run and leaves a failure as it is.
type DoOptions struct {
	LockTimeout         time.Duration // how long to wait for another run on the release
	Atomic              bool          // a run that fails is undone
	RollbackOnInterrupt bool          // with Atomic: also one that was stopped because the context ended
	// BeforeExecute hears what is about to be carried out, under the lock; its error
	// ends it. May be nil.
	BeforeExecute func(*Operation) error
	// OnRecovered hears of what dead runs had left unfinished; nil warns of it.
	OnRecovered func(release.Recovered)
	OnEvent     EventHandler // may be nil
}

// An Outcome is how an operation ended.
type Outcome struct {
	Operation *Operation      // nil when it didn't come to that
	Record    *release.Record // as last written; nil when none was
	Err       error           // nil: done
}

// Do is the whole life of an operation on a release. It decides, takes the lock
// of the release, and decides again if anything that the decision was based on is
// different by then, or if somebody had the lock; carries the operation out;
// undoes it if it fails and that was asked for; gives the lock back; and removes
// a namespace that was made for a release of which there is no record.
func (d *Deployer) Do(ctx context.Context, name string, decide DecideFunc, opts DoOptions) Outcome {
	l := &lifecycle{Deployer: d, name: name, decide: decide, opts: opts}
	defer l.cleanUp(ctx)
	if err := l.decideUnderLock(ctx); err != nil {
		return Outcome{Err: err}
	}
	return l.executeOrUndo(ctx)
}

// A lifecycle is that of one operation.
type lifecycle struct {
	*Deployer
	name   string
	decide DecideFunc
	opts   DoOptions

	op               *Operation        // as last decided; nil when that has to wait for another run
	createdNamespace *corev1.Namespace // for this operation; nil when it was there
	lock             *release.Lock     // nil until it is had
	hasRecord        bool              // there is a record: what was made isn't in vain
}

// decideUnderLock decides and takes the lock. The operation is then based on what the
// release is under the lock.
func (l *lifecycle) decideUnderLock(ctx context.Context) error {
	if err := l.decideBeforeLock(ctx); err != nil {
		return err
	}
	history, err := l.lockAndRecover(ctx)
	if err != nil {
		return err
	}
	if !l.decisionHolds(history) {
		if err := l.redecide(ctx); err != nil {
			return err
		}
	}
	if l.opts.BeforeExecute != nil {
		return l.opts.BeforeExecute(l.op)
	}
	return nil
}

// decisionHolds says whether what was decided before the lock was had may be carried
// out: the release is the one that the decision was based on, and nobody was at work
// on it meanwhile.
func (l *lifecycle) decisionHolds(history *release.History) bool {
	return l.op != nil && l.createdNamespace == nil && !l.lock.HadToWait() && l.op.Basis.Records == history.Identity()
}

// lockAndRecover takes the lock and recovers what dead runs have left, within the time
// of a step and of waiting for others.
func (l *lifecycle) lockAndRecover(ctx context.Context) (_ *release.History, err error) {
	limit := l.Settings.Timeout
	if limit > 0 {
		limit += l.opts.LockTimeout
	}
	ctx, done := LimitStep(ctx, StepLock, limit)
	defer func() { err = done(err) }()
	// A namespace or lock that a signal lets us forget while it is made would stay.
	guarded := kube.WithWriteHook(ctx, func(context.Context) (func(), error) { return func() {}, nil })
	if err := l.createNamespace(guarded); err != nil {
		return nil, err
	}
	if err := l.acquireLock(guarded); err != nil {
		return nil, err
	}
	history, recovered, err := l.lock.Recover(guarded)
	l.reportRecovered(recovered)
	return history, err
}

// decideBeforeLock decides before the lock is had, because that only reads and may take
// long. What can't be decided while somebody is at work is decided when they have
// ended, if they may be waited for: the operation is nil until then.
func (l *lifecycle) decideBeforeLock(ctx context.Context) error {
	op, err := l.Decide(ctx, l.decide)
	if err != nil && l.opts.LockTimeout > 0 && mayBeDueToOtherRun(err) {
		if held, herr := l.Releases.IsLeased(ctx, l.name); herr == nil && held {
			return nil
		}
	}
	if missing := new(release.NotFoundError); errors.As(err, &missing) && missing.Revision == 0 {
		err = errors.Join(err, l.Releases.DeleteDeadLease(ctx, l.name))
	}
	if err != nil {
		return err
	}
	l.op = op
	if op.Plan != nil {
		// Whoever may not carry it out shall not leave a lock or a namespace.
		return op.Plan.CheckPermissions()
	}
	return nil
}

// mayBeDueToOtherRun tells errors of a decision that another run may be the reason for.
func mayBeDueToOtherRun(err error) bool {
	for _, is := range []any{
		new(*release.NotFoundError), new(*release.NoDeployedError), new(*release.NoSuccessError), new(*NameInUseError),
		new(*UninstalledError), new(*apply.RejectedError), new(*NoNamespaceError),
	} {
		if errors.As(err, is) {
			return true
		}
	}
	return false
}

// acquireLock gets the lock.
func (l *lifecycle) acquireLock(ctx context.Context) (err error) {
	l.lock, err = l.Releases.Lock(ctx, l.name, release.LockOptions{
		Operation: lockDescription(l.op), Timeout: l.opts.LockTimeout, Grace: max(leastPendingAge, l.Settings.Timeout), Warn: l.warn,
		TakeoverPending: l.Settings.TakeoverPending,
		OnWaiting:       func(h release.Holder) { l.warn(fmt.Sprintf("waiting for another run on release %s: %s", l.name, h)) },
	})
	return err
}

func (l *lifecycle) reportRecovered(recovered []release.Recovered) {
	for _, s := range recovered {
		if l.opts.OnRecovered != nil {
			l.opts.OnRecovered(s)
			continue
		}
		l.warn(s.String() + "; it is recorded as failed now")
	}
}

// redecide decides under the lock: verb, values and base included.
func (l *lifecycle) redecide(ctx context.Context) error {
	before := l.op
	op, err := l.Decide(ctx, l.decide)
	if err != nil {
		return err
	}
	l.op = op
	l.lock.SetOperation(lockDescription(op))
	if before != nil && before.Basis.Records.IsKnown() && before.Basis.differsFrom(op.Basis) {
		l.warn(fmt.Sprintf("release %s was changed by another run in the meantime, so the plan was made again: %s", l.name, op.Basis))
	}
	return nil
}

func (l *lifecycle) executeOrUndo(ctx context.Context) Outcome {
	out := Outcome{Operation: l.op}
	out.Record, out.Err = l.execute(ctx, l.lock, l.op, l.opts.OnEvent)
	l.hasRecord = out.Record != nil
	if out.Err == nil || !l.opts.Atomic || !canBeUndone(out) || ctx.Err() != nil && !l.opts.RollbackOnInterrupt {
		return out
	}
	// A signal has ended the run but not the way back; a second one ends all.
	out.Err = l.undo(context.WithoutCancel(ctx), out)
	return out
}

// canBeUndone tells whether a run got far enough to leave something that can be
// undone, and still has the right to.
func canBeUndone(o Outcome) bool {
	return o.Record != nil && o.Record.Info.Status == helmrelease.StatusFailed && !errors.As(o.Err, new(*release.LockLostError))
}

// cleanUp releases the lock, and removes the namespace created for this operation if there
// is no record.
func (l *lifecycle) cleanUp(ctx context.Context) {
	if l.lock != nil {
		if err := l.lock.Unlock(ctx); err != nil {
			l.warn(err.Error())
		}
	}
	if l.createdNamespace != nil && !l.hasRecord {
		l.removeCreatedNamespace(ctx)
	}
}

func (d *Deployer) warn(text string) {
	if d.Warn != nil {
		d.Warn(text)
	}
}
