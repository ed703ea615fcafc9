package deploy

import (
	"context"
	"errors"
	"fmt"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"

	"deployer/internal/kube"
	"deployer/release"
	"deployer/track"
)

// DoOptions say how an operation is carried out. The zero value waits for no
// other run and leaves a failure as it is.
type DoOptions struct {
	LockTimeout         time.Duration // how long to wait for another run on the release
	Atomic              bool          // a run that fails is undone
	RollbackOnInterrupt bool          // with Atomic: also one that was stopped because the context ended
	IgnoreMissing       bool          // an uninstall of a release that doesn't exist has nothing to do
	// BeforeExecute is called under the lock with the operation that is about to be
	// carried out; its error ends the run. May be nil.
	BeforeExecute func(*Operation) error
	OnEvent       EventHandler // may be nil
}

// An Outcome is how an operation ended.
type Outcome struct {
	Operation *Operation      // nil when nothing was decided
	Record    *release.Record // as last written; nil when none was
	Err       error           // nil: done
}

// Do runs the whole life of an operation on a release. It decides and takes the lock of
// the release. It decides again if the decision's basis has changed by then, or if
// another run had the lock. It carries out the operation, and undoes a failed one if that
// was requested. At last it releases the lock, and removes a namespace that was created
// for a release without any record.
func (d *Deployer) Do(ctx context.Context, name string, decide DecideFunc, opts DoOptions) Outcome {
	l := &lifecycle{Deployer: d, name: name, decide: decide, opts: opts}
	defer l.cleanUp(ctx)
	err := l.decideUnderLock(ctx)
	switch {
	case opts.IgnoreMissing && errors.As(err, new(*release.NotFoundError)):
		l.warn(NothingToUninstall(name))
		op := &Operation{Verb: Uninstall, Release: name, Namespace: d.Namespace, Place: d.Place()}
		serial(opts.OnEvent)(Event{Event: track.Event{Kind: Ended}, Operation: op})
		return Outcome{}
	case err != nil:
		return Outcome{Err: err}
	}
	return l.executeOrUndo(ctx)
}

// NothingToUninstall warns of a release that doesn't exist.
func NothingToUninstall(name string) string {
	return fmt.Sprintf("release %s does not exist: nothing to uninstall", name)
}

// A lifecycle is the state of Do.
type lifecycle struct {
	*Deployer
	name   string
	decide DecideFunc
	opts   DoOptions

	op               *Operation          // the last decision; nil while none holds
	createdNamespace *corev1.Namespace   // for this operation; nil when it was there
	lock             *release.Lock       // nil while it isn't held
	recovered        []release.Recovered // what dead runs had left unfinished, and is recorded as failed now
	hasRecord        bool                // there is a record, so a created namespace stays
}

// decideUnderLock decides and takes the lock. The operation is then based on the state of
// the release under the lock.
func (l *lifecycle) decideUnderLock(ctx context.Context) error {
	if err := l.decideBeforeLock(ctx); err != nil {
		return err
	}
	history, err := l.lockAndRecover(ctx)
	for _, r := range l.recovered {
		l.warn(r.String() + "; it is recorded as failed now")
	}
	if err != nil {
		return err
	}
	switch {
	case !l.decisionHolds(history):
		err = l.redecide(ctx)
	case l.createdNamespace != nil:
		err = l.redecideInNewNamespace(ctx)
	}
	if err != nil {
		return err
	}
	l.op.MadeNamespace = l.createdNamespace != nil && !l.op.Plan.Declares(l.op.namespaceID())
	if l.opts.BeforeExecute != nil {
		return l.opts.BeforeExecute(l.op)
	}
	return nil
}

// decisionHolds reports whether the decision from before the lock may be carried out: its
// basis is unchanged, and no other run held the lock.
func (l *lifecycle) decisionHolds(history *release.History) bool {
	return l.op != nil && !l.lock.HadToWait() && l.op.Basis.Records == history.Identity()
}

// lockAndRecover takes the lock and recovers what dead runs have left, within the time
// limit of a step plus what it takes to wait for other runs, living or dead.
func (l *lifecycle) lockAndRecover(ctx context.Context) (_ *release.History, err error) {
	limit := l.Settings.Timeout
	if limit > 0 {
		limit += l.opts.LockTimeout + release.LeaseDuration
	}
	ctx, done := LimitStep(ctx, StepLock, limit)
	defer func() { err = done(err) }()
	// A signal must not abandon the creation of a namespace or lock: the object would
	// stay.
	ctx = kube.WithAwaitedWrites(ctx)
	if err := l.createNamespace(ctx); err != nil {
		return nil, err
	}
	if err := l.acquireLock(ctx); err != nil {
		return nil, err
	}
	history, recovered, err := l.lock.Recover(ctx)
	l.recovered = recovered
	if err != nil && l.op.endsRefusal(err) {
		l.warn(fmt.Sprintf("the record doesn't say that the run before has failed: %v; the uninstall deletes what refuses that", err))
		l.op.goUnrecorded()
		err = nil
	}
	return history, err
}

// decideBeforeLock decides before taking the lock, because deciding only reads and may
// take long. If another run may have prevented the decision, the operation stays nil and is
// decided under the lock.
func (l *lifecycle) decideBeforeLock(ctx context.Context) error {
	op, err := l.Decide(ctx, l.decide)
	ours := errors.As(err, new(inputError)) || errors.As(err, new(*StepTimeoutError))
	if err != nil && !ours && l.otherRunInterfered(ctx, op) {
		return nil
	}
	if missing := new(release.NotFoundError); errors.As(err, &missing) && missing.Revision == 0 {
		err = errors.Join(err, l.Releases.DeleteDeadLease(ctx, l.name))
	}
	if err != nil {
		return err
	}
	l.op = op
	// A run without the permissions must not leave a lock or a namespace.
	return op.CheckPermissions()
}

// otherRunInterfered reports whether another run holds the release, or has changed its records since they
// were read for op. op is nil if the decision failed before that. If nothing can be read, the result is
// false, and the error of the decision counts.
func (l *lifecycle) otherRunInterfered(ctx context.Context, op *Operation) bool {
	if held, err := l.Releases.IsLeased(ctx, l.name); err == nil && held {
		return true
	}
	if op == nil {
		return false
	}
	history, err := l.Releases.History(ctx, l.name)
	return err == nil && history.Identity() != op.Basis.Records
}

func (l *lifecycle) acquireLock(ctx context.Context) (err error) {
	opts := release.LockOptions{
		Operation: lockDescription(l.op), Timeout: l.opts.LockTimeout, Grace: max(leastPendingAge, l.Settings.Timeout), Warn: l.warn,
		TakeoverPending: l.Settings.TakeoverPending, NoLease: l.Settings.NoLock, MaxHistory: l.Settings.MaxHistory,
		OnWaiting: func(h release.Holder) { l.warn(fmt.Sprintf("waiting for another run on release %s: %s", l.name, h)) },
	}
	l.lock, err = l.Releases.Lock(ctx, l.name, opts)
	if err != nil && l.op.endsRefusal(err) {
		l.warn(fmt.Sprintf("%v; the uninstall deletes what refuses it, and meanwhile only the release record keeps other runs out", err))
		opts.NoLease = true
		l.lock, err = l.Releases.Lock(ctx, l.name, opts)
	}
	return err
}

// redecide decides again under the lock, including verb, values and basis.
func (l *lifecycle) redecide(ctx context.Context) error {
	var before Basis
	unrecorded := false
	if l.op != nil {
		before, unrecorded = l.op.Basis, l.op.unrecorded
	}
	l.op = nil // two plans of thousands of objects would take twice the memory
	op, err := l.Decide(ctx, l.decide)
	if err != nil {
		return err
	}
	l.op = op
	if unrecorded {
		op.goUnrecorded()
	}
	l.lock.SetOperation(lockDescription(op))
	if before.Records != "" && before.differsFrom(op.Basis) {
		why := "was changed by another run in the meantime"
		if len(l.recovered) > 0 {
			why = "was recovered"
		}
		l.warn(fmt.Sprintf("release %s %s, so the plan was made again: %s", l.name, why, op.Basis))
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
	// The signal that ended the run doesn't end the undo; a second signal ends the
	// program.
	out.Err = l.undo(context.WithoutCancel(ctx), out)
	return out
}

// canBeUndone reports whether a run got far enough to leave something to undo, and still
// has the lock.
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

// leastPendingAge is the minimum age at which a record that another tool left pending
// counts as dead: that tool's --timeout isn't known, and applies to each of its waits.
const leastPendingAge = time.Hour

// lockDescription returns the description of the operation for the lock; op is nil when
// it will be decided later.
func lockDescription(op *Operation) string {
	if op == nil {
		return "to be decided"
	}
	if preposition := verbs[op.Verb].revision; preposition != "" {
		return fmt.Sprintf("%s %s revision %d", op.Verb, preposition, op.Next.Version)
	}
	return string(op.Verb)
}

// Recover records as failed what dead runs have left of a release, and changes
// nothing else. With an error it returns what it has recorded before. The error is a
// *release.NotFoundError when there is no such release.
func (d *Deployer) Recover(ctx context.Context, name string, timeout time.Duration) ([]release.Recovered, error) {
	l := &lifecycle{Deployer: d, name: name, opts: DoOptions{LockTimeout: timeout}}
	l.decide = func(ctx context.Context, d *Deployer) (*Operation, error) {
		history, err := d.existingHistory(ctx, name)
		if err != nil {
			return nil, err
		}
		return d.newOperation(recoverOnly, history), nil
	}
	defer l.cleanUp(ctx)
	if err := l.decideBeforeLock(ctx); err != nil {
		return nil, err
	}
	history, err := l.lockAndRecover(ctx)
	if err == nil && history.Latest() == nil { // another run has uninstalled it
		err = &release.NotFoundError{Namespace: d.Namespace, Name: name}
	}
	return l.recovered, err
}
