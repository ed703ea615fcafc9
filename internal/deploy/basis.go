package deploy

import (
	"context"
	"errors"
	"fmt"

	"deployer/release"
)

// A Basis is what a decision was based on. The decision holds as long as the basis is the
// same.
type Basis struct {
	// Records is the identity of all records of the release; unknown for an
	// operation that isn't decided yet.
	Records        release.Identity
	Verb           Verb
	Latest         *release.Summary  // the latest revision; nil before the first
	Revisions      []release.Summary // all there are, oldest first
	ReusedRevision int               // revision whose values are reused
}

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
	return &Operation{
		Verb: verb, Release: history.Name, Namespace: d.Namespace, history: history,
		Basis: Basis{Records: history.Identity(), Verb: verb, Latest: history.Latest(), Revisions: history.Revisions},
	}
}

// differsFrom reports whether the basis differs in a way that a user cares about.
func (b Basis) differsFrom(from Basis) bool {
	return b.Verb != from.Verb || b.describeLatest() != from.describeLatest() || b.ReusedRevision != from.ReusedRevision
}

func (b Basis) describeLatest() string {
	if b.Latest == nil {
		return "no revision"
	}
	return fmt.Sprintf("revision %d, which is %s", b.Latest.Revision, b.Latest.Status)
}

// String describes the basis.
func (b Basis) String() string {
	text := fmt.Sprintf("%s based on %s", b.Verb, b.describeLatest())
	if b.ReusedRevision != 0 {
		text += fmt.Sprintf(", with the values of revision %d", b.ReusedRevision)
	}
	return text
}
