package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"

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

// beUnrecorded lets an uninstall go on although admission refuses to record that the run before it has ended.
func (o *Operation) beUnrecorded() {
	pending := o.pendingWarning()
	o.Warnings = slices.DeleteFunc(o.Warnings, func(text string) bool { return text == pending })
	o.unrecorded = true
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
