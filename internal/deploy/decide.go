package deploy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/internal/kube"
	"deployer/release"
)

// A DecideFunc decides an operation; it only reads. It is called again when what it
// was based on has changed.
type DecideFunc = func(context.Context, *Deployer) (*Operation, error)

// maxDecisions limits how often a decision is repeated because the release was
// uninstalled while its records were read. That hardly happens more than once or twice.
const maxDecisions = 5

// Decide makes a decision within the time limit of a step. It repeats the decision if the
// release was uninstalled while its records were read. It only reads.
func (d *Deployer) Decide(ctx context.Context, decide DecideFunc) (op *Operation, err error) {
	ctx, done := LimitStep(ctx, StepDecide, d.Settings.Timeout)
	defer func() { err = done(err) }()
	for range maxDecisions {
		op, err = decide(ctx, d)
		if missing := new(release.NotFoundError); !errors.As(err, &missing) || !missing.Vanished {
			break
		}
	}
	return op, err
}

func (d *Deployer) newOperation(verb Verb, history *release.History) *Operation {
	op := &Operation{
		Verb: verb, Release: history.Name, Namespace: d.Namespace, Place: d.Place(), history: history, wait: d.Settings.Wait,
		Basis: Basis{Records: history.Identity(), Verb: verb, Latest: history.Latest(), Revisions: history.Revisions},
	}
	if text := op.pendingWarning(); text != "" {
		op.Warnings = []string{text}
	}
	return op
}

// pendingWarning says that another run may be under way; empty if the records don't.
func (o *Operation) pendingWarning() string {
	latest := o.Basis.Latest
	if latest == nil || !latest.Status.IsPending() {
		return ""
	}
	return fmt.Sprintf("release %s/%s is %s at revision %d: nothing is changed before that run has ended or, if it no longer runs, is taken over (--takeover-pending)",
		o.Namespace, o.Release, latest.Status, latest.Revision)
}

// existingHistory reads the history of a release that has one.
func (d *Deployer) existingHistory(ctx context.Context, name string) (*release.History, error) {
	if err := release.ValidateName(name); err != nil {
		return nil, inputError{err}
	}
	history, err := d.Releases.HistoryWithRecords(ctx, name)
	if err == nil && history.Latest() == nil {
		err = &release.NotFoundError{Namespace: d.Namespace, Name: name}
	}
	return history, err
}

// latestRecord also reads the latest record of the release.
func (d *Deployer) latestRecord(ctx context.Context, name string) (*release.History, *release.Record, error) {
	history, err := d.existingHistory(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	record, err := history.Load(ctx, history.Latest().Revision)
	return history, record, err
}

// newRecord returns the record of a new revision.
func newRecord(content helmrelease.Release, notes, description string) *release.Record {
	content.Info = &helmrelease.Info{Notes: notes, Description: description}
	content.Hooks = slices.Clone(content.Hooks)
	for i, h := range content.Hooks {
		hook := *h
		hook.LastRun = helmrelease.HookExecution{} // of an earlier run
		content.Hooks[i] = &hook
	}
	return &release.Record{Release: content, Journal: &release.Journal{}}
}

// prefetchForShow begins to read all records of the release while the plan is made, because showing a plan
// with changes takes them: see hideStoredRevisions. The function that it returns waits for them. Call it
// before op.history is used again.
func (d *Deployer) prefetchForShow(ctx context.Context, op *Operation) func() {
	history := op.history
	deployed := history.Deployed()
	if !d.ForShow || deployed == nil || op.Verb == Uninstall {
		return func() {}
	}
	if record, err := history.Load(ctx, deployed.Revision); err != nil || record.Manifest == op.Next.Manifest {
		return func() {} // there is hardly anything to show
	}
	var loading sync.WaitGroup
	loading.Go(func() { history.LoadRemaining(ctx) })
	return loading.Wait
}

// resumeAttempt continues the attempt of an interrupted run with the same manifest:
// finished hooks don't run again, and running hooks are awaited. After a run recorded as
// failed, all hooks run again, as in Helm.
func (o *Operation) resumeAttempt(latest *release.Record) {
	var dead *release.Journal // of the run that died
	if latest != nil && latest.Journal != nil && latest.Journal.Interrupted {
		dead = latest.Journal
	}
	switch {
	case o.Verb == Uninstall && o.Next.Journal != nil && (dead == nil || latest.Info.Deleted.IsZero()):
		// It is the journal of the run that deployed the revision, or that died doing so.
		o.Next.Journal.Attempt, o.Next.Journal.Hooks = "", nil
	case o.Verb != Uninstall && dead != nil && latest.Manifest == o.Next.Manifest:
		o.Next.Journal.Attempt, o.Next.Journal.Hooks = dead.Attempt, maps.Clone(dead.Hooks)
		succeeded := slices.DeleteFunc(slices.Clone(latest.Hooks), func(h *helmrelease.Hook) bool { return h.LastRun.Phase != helmrelease.HookPhaseSucceeded })
		copyRuns(succeeded, o.Next.Hooks)
	}
}

// stepGrace is added to the timeout for each step before the first change: reading the
// chart, deciding, locking. A short timeout is meant for waits, and planning on a busy
// cluster must not fail because of it.
const stepGrace = 10 * time.Second

// LimitStep limits a step before the first change to timeout plus stepGrace; 0 means no
// limit. Call the returned function at the end of the step: it turns an error caused by
// the limit into a *StepTimeoutError.
func LimitStep(ctx context.Context, step Step, timeout time.Duration) (context.Context, func(error) error) {
	if timeout <= 0 {
		return kube.WithLimit(ctx, 0, nil)
	}
	limit := timeout + stepGrace
	return kube.WithLimit(ctx, limit, func(err error) error {
		return &StepTimeoutError{Step: step, Limit: limit, Err: err}
	})
}

// A StepTimeoutError says that a step that only reads took too long. Before the first change, nothing has been changed then.
type StepTimeoutError struct {
	Step  Step
	Limit time.Duration
	Err   error // the step's error
}

func (e *StepTimeoutError) Error() string {
	return fmt.Sprintf("%s took more than %s: %s", e.Step, e.Limit, e.Err)
}

// Unwrap gives what was under way.
func (e *StepTimeoutError) Unwrap() error { return e.Err }

// Hint says what decides how long it may take.
func (e *StepTimeoutError) Hint() string {
	return fmt.Sprintf("a server answers slowly or not at all; give it more time with a longer --timeout: each step before the first change may take that plus %s", stepGrace)
}
