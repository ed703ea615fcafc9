package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/internal/kube"
	"deployer/release"
	"deployer/track"
)

// execute carries an operation out under the lock of its release. Unless the lock is lost, or the end can't be
// written, the record ends in a terminal status. onEvent gets Ended last, always.
// The record is nil when none was written.
func (d *Deployer) execute(ctx context.Context, lock *release.Lock, op *Operation, onEvent EventHandler) (*release.Record, error) {
	applier := cmp.Or(op.applier, d.newApplier(op))
	op.history, op.applier = nil, nil // the records and objects of thousands of objects take megabytes
	journal := &journalWriter{op: op, lock: lock, adoptions: map[string]*release.Adoption{}}
	applier.OnAdoption = journal.recordAdoption
	tracking := d.Settings.Track
	tracking.Declares = op.Plan.Declares // also what isn't tracked
	r := &run{
		d: d, op: op, lock: lock, emit: serial(onEvent), began: time.Now(), journal: journal,
		applier: applier, tracker: track.New(d.Cluster, tracking), wasAwaited: map[kube.ID]bool{},
	}
	r.tell(Began, Event{Operation: op})
	if op.MadeNamespace {
		r.tell(Applied, Event{Step: StepNamespace, Change: &apply.Change{ID: op.namespaceID(), Action: decide.Create}})
	}
	var record *release.Record
	err := op.CheckPermissions()
	if err == nil {
		record, err = r.underLock(ctx)
	}
	r.tell(Ended, Event{Operation: op, Record: record, Took: time.Since(r.began), Err: err})
	return record, err
}

// A run is one operation being carried out.
type run struct {
	d          *Deployer
	op         *Operation
	lock       *release.Lock
	emit       EventHandler
	applier    *apply.Applier
	tracker    *track.Tracker
	began      time.Time
	journal    *journalWriter
	step       Step             // the current step
	hasWritten bool             // a step that changes something has begun
	wasAwaited map[kube.ID]bool // awaited by others and found ready
}

// underLock works under the lock's context: if the lock is lost, nothing may be changed
// any more. A run that was suspended checks the lock before its next write.
func (r *run) underLock(ctx context.Context) (*release.Record, error) {
	ctx, cancel := mergeContexts(ctx, r.lock.Context())
	defer cancel()
	ctx = kube.WithWriteHook(ctx, r.lock.BeginWrite)
	ctx, cancelCleanup := withCleanup(ctx, cleanupTimeout)
	defer cancelCleanup()
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	record, err := r.finish(ctx, r.carryOutPlan(ctx))
	if err == nil {
		err = r.giveUpAccess(ctx)
	}
	return record, err
}

// begin confirms that the release is as it was decided on. It records that the run has begun, where something is left to do for
// which a record stands, and nothing refuses that.
func (r *run) begin(ctx context.Context) (err error) {
	next, decided, verb := r.op.Next, r.op.Basis.Records, verbs[r.op.Verb]
	switch {
	case verb.creates:
		next.Info.Status = verb.running
		r.journal.update(false)
		err = r.lock.Begin(ctx, next, decided)
	case verb.running == "" || r.op.removesOnlyRecords():
		return r.lock.ConfirmHistory(ctx, next.Version, decided)
	case r.op.unrecorded:
		return r.lock.BeginUnrecorded(ctx, next, decided)
	default:
		err = r.lock.BeginUninstall(ctx, next, decided)
	}
	if err != nil && r.op.endsRefusal(err) {
		r.op.goUnrecorded()
		r.warn(fmt.Sprintf("the record doesn't say yet that the release is being uninstalled, which deletes what refuses that: %v", err))
		return nil
	}
	if err == nil {
		r.tell(Recorded, Event{Record: next})
	}
	return err
}

// carryOutPlan carries out the operation's plan and runs its hooks. For most operations some of the steps have nothing to do: an
// uninstall applies nothing, and a test only runs its hooks.
func (r *run) carryOutPlan(ctx context.Context) error {
	before, after := r.op.Verb.HookEvents()
	return r.inSequence(ctx,
		func() error { return r.applyCRDs(ctx) },
		func() error { return r.runHooks(ctx, before, r.op.Hooks.Before) },
		func() error { return r.planAgainAfterHooks(ctx) },
		func() error { return r.prune(ctx, r.op.Plan.PruneFirst, apply.UntilGone) },
		func() error { return r.applyWaves(ctx, 0) },
		func() error { return r.applier.AwaitKinds(ctx, r.op.wait) },
		func() error { return r.waitUntilReady(ctx) },
		func() error { return r.prune(ctx, r.op.Plan.Prune, apply.UntilNotBack) },
		func() error { return r.waitUntilGone(ctx) },
		func() error { return r.lookOnceMore(ctx) },
		func() error { return r.runHooks(ctx, after, r.op.Hooks.After) },
		func() error { return r.op.Plan.Stayed(r.op.Target) },
	)
}

// stoppedError returns a *StoppedError if the run was ended from outside, and err, the failure of a step,
// otherwise.
func (r *run) stoppedError(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return &StoppedError{Step: r.step, Cause: context.Cause(ctx), Err: err}
}

// mergeContexts gives a context that ends when one of two does, for its cause.
func mergeContexts(ctx, other context.Context) (context.Context, context.CancelFunc) {
	merged, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return merged, func() {
		stop()
		cancel(nil)
	}
}

// applyCRDs applies the chart's crds/ directory and waits until the kinds are
// served that hooks and objects may use.
func (r *run) applyCRDs(ctx context.Context) error {
	changes := r.op.Plan.CRDs
	return r.runStep(ctx, StepCRDs, len(changes), func() error { return r.applyChanges(ctx, StepCRDs, changes) })
}

func (r *run) applyChanges(ctx context.Context, step Step, changes []apply.Change) error {
	return r.applier.Run(ctx, changes, r.reportApplied(step))
}

// reportApplied returns what is called for each change of a step that was carried out.
func (r *run) reportApplied(step Step) func(*apply.Change) {
	return func(c *apply.Change) {
		r.tell(Applied, Event{Step: step, Change: c})
		if c.Warning != "" {
			r.warn(c.ID.String() + ": " + c.Warning)
		}
	}
}

// prune deletes what the chart dropped: what must be gone before other objects change, and the rest after the wait, because the old may
// serve until the new is ready.
func (r *run) prune(ctx context.Context, changes []apply.Change, until apply.Assurance) error {
	return r.runStep(ctx, StepPrune, len(changes), func() error {
		return r.applier.Prune(ctx, changes, until, r.reportApplied(StepPrune))
	})
}

// giveUpAccess takes away the permissions by which the run acts, if all else has succeeded and is recorded.
func (r *run) giveUpAccess(ctx context.Context) error {
	plan := r.op.Plan
	if len(plan.Last())+len(plan.PruneLast) == 0 {
		return nil
	}
	return errors.Join(r.applyChanges(ctx, StepApply, plan.Last()), r.applier.Prune(ctx, plan.PruneLast, apply.UntilAccepted, r.reportApplied(StepPrune)))
}

// finish records how the run ended: in the record that says that it runs, or for tests in the hooks of the latest one. A deployed
// revision stays deployed until the next one is recorded as such.
func (r *run) finish(ctx context.Context, err error) (*release.Record, error) {
	record, verb := r.op.Next, verbs[r.op.Verb]
	r.journal.update(true)
	var ferr error
	switch tests := r.op.Hooks.Before; {
	case verb.running == "" && len(tests) == 0, err != nil && r.op.removesOnlyRecords(): // the record doesn't say that it runs
		return record, err
	case verb.running == "": // also when one failed or the run was stopped: the last run of each test is what status shows
		record, ferr = r.lock.Amend(ctx, record, func(rec *release.Record) { copyRuns(tests, rec.Hooks) })
	case err != nil:
		ferr = r.untilHeeded(ctx, func() error { return r.lock.Finish(ctx, record, helmrelease.StatusFailed, r.description(err)) })
	case !verb.creates:
		ferr = r.untilHeeded(ctx, func() error { return r.lock.FinishUninstall(ctx, record, r.op.Removal.KeepHistory, r.description(nil)) })
	default:
		r.journal.confirmAdoptions()
		ferr = r.untilHeeded(ctx, func() error { return r.lock.Finish(ctx, record, helmrelease.StatusDeployed, r.description(nil)) })
		if ferr != nil && !errors.As(ferr, new(*release.LockLostError)) {
			ferr = fmt.Errorf("everything was deployed, but that couldn't be recorded: %w", ferr)
		}
	}
	if ferr != nil {
		return r.op.Next, errors.Join(err, ferr)
	}
	r.tell(Recorded, Event{Record: record})
	return record, err
}

// A Step is one of the steps of an operation, by the name that events, records, plan
// files and messages have for it.
type Step string

// The steps, in the order of an upgrade. Those of hooks are named by HookStep.
const (
	StepReadChart Step = "reading the chart"
	StepDecide    Step = "planning"
	StepLock      Step = "locking the release"
	StepObserve   Step = "reading the live objects" // before they are watched
	StepCRDs      Step = "crds"
	StepApply     Step = "apply"
	StepWait      Step = "wait"
	StepPrune     Step = "prune"
	StepRecord    Step = "record" // before, between and after the others: the run writes its record

	StepNamespace Step = "namespace" // in plans: the release's namespace, created before the others

	StepHooks Step = "hooks" // of any event, in plan files
	StepHook  Step = "hook"  // of an Applied event: an object of a hook
)

// HookStep is the step that runs the hooks of an event.
func HookStep(event helmrelease.HookEvent) Step { return Step(event) + " " + StepHooks }

// inSequence runs one step after the other until one fails or the run is ended from
// outside.
func (r *run) inSequence(ctx context.Context, steps ...func() error) error {
	for _, step := range steps {
		if ctx.Err() != nil {
			return r.stoppedError(ctx, nil)
		}
		if err := step(); err != nil {
			return r.stoppedError(ctx, err)
		}
	}
	return nil
}

// writesIn reports whether a step may change something in the cluster.
func (o *Operation) writesIn(step Step) bool {
	switch step {
	case StepWait:
		return false
	case StepCRDs:
		return slices.ContainsFunc(o.Plan.CRDs, apply.Change.MayWrite)
	case StepApply:
		return slices.ContainsFunc(o.Plan.Waves, func(w apply.Wave) bool { return slices.ContainsFunc(w.Changes, apply.Change.MayWrite) })
	case StepPrune:
		return slices.ContainsFunc(o.Plan.Orphans(), func(list []apply.Change) bool { return slices.ContainsFunc(list, apply.Change.MayWrite) })
	}
	return true
}

// runStep runs one step of the operation between its two events. A step without objects
// is skipped silently.
func (r *run) runStep(ctx context.Context, step Step, objects int, body func() error) error {
	if objects == 0 {
		return nil
	}
	began := time.Now()
	r.tell(StepBegan, Event{Step: step, Objects: objects})
	err := r.recordStep(ctx, step)
	if err == nil {
		err = body()
	}
	r.tell(StepEnded, Event{Step: step, Objects: objects, Took: time.Since(began), Err: err})
	return err
}

// recordStep records the step that the run has reached, for whoever finds the record if the run dies.
// Before the first change it records nothing.
func (r *run) recordStep(ctx context.Context, step Step) error {
	r.step = step
	r.hasWritten = r.hasWritten || r.op.writesIn(step)
	if !r.op.notesProgress() || !r.hasWritten {
		return nil
	}
	r.op.Next.Journal.Step = string(step)
	r.journal.update(false)
	return r.untilHeeded(ctx, func() error { return r.lock.Save(ctx, r.op.Next) })
}

// cleanupTimeout limits, from the moment that a run is stopped, the wait for pending
// answers and the deletion of hooks. Two seconds later the end has to be recorded.
const cleanupTimeout = 8 * time.Second

type cleanupKey struct{}

// withCleanup gives ctx a cleanupContext, which ends a little later.
func withCleanup(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	after, cancel := kube.WithGracePeriod(ctx, by)
	return context.WithValue(ctx, cleanupKey{}, after), cancel
}

// cleanupContext returns the context for cleaning up after the run was stopped; ctx
// itself while it runs.
func cleanupContext(ctx context.Context) context.Context {
	if after, ok := ctx.Value(cleanupKey{}).(context.Context); ok && ctx.Err() != nil {
		return after
	}
	return ctx
}
