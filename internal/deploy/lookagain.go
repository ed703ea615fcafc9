package deploy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"deployer/apply"
	"deployer/internal/kube"
	"deployer/internal/program"
	"deployer/track/finding"
)

// lookAgain makes the plan again for what comes after its first done waves: hooks have run, or the run has waited, so
// that the objects may not be any more what they were when the plan was made. The error is a late rejection.
func (r *run) lookAgain(ctx context.Context, done int) (err error) {
	ctx, end := LimitStep(ctx, StepDecide, r.Settings.Timeout)
	defer func() { err = end(err) }()
	if err := r.applier.PlanAgain(ctx, *r.op.request, r.op.Plan, done); err != nil {
		return err
	}
	r.tell(Replanned, Event{Operation: r.op})
	return nil
}

// lookAgainAfterHooks looks again if hooks have run before the first object's turn.
func (r *run) lookAgainAfterHooks(ctx context.Context) error {
	if len(r.op.Hooks.Before) == 0 {
		return nil
	}
	return r.lookAgain(ctx, 0)
}

// ranProgram reports whether waves have made something that runs and comes to its end: it may have changed other objects.
func ranProgram(waves []apply.Wave) bool {
	for _, wave := range waves {
		for _, c := range wave.Changes {
			if c.Action != apply.Unchanged && c.Action != apply.Keep && kube.RunsToEnd(c.ID.GroupKind()) {
				return true
			}
		}
	}
	return false
}

// lookOnceMore fails if an object that was applied isn't there any more. If nothing was changed, all have been seen just now.
func (r *run) lookOnceMore(ctx context.Context) (err error) {
	applied := slices.DeleteFunc(r.appliedInOrder(), func(c *apply.Change) bool {
		return c.Applied == nil || kube.IsDeletedWhenFinished(c.Applied) || c.Applied.GetDeletionTimestamp() != nil
	})
	if !slices.ContainsFunc(applied, func(c *apply.Change) bool { return c.Action != apply.Unchanged }) {
		return nil
	}
	ctx, end := LimitStep(ctx, StepObserve, r.Settings.Timeout)
	defer func() { err = end(err) }()
	gone, err := r.applier.Vanished(ctx, applied)
	if err == nil && len(gone) > 0 {
		err = program.WithHint(fmt.Errorf("another client has deleted %s since it was applied", strings.Join(finding.IDs(gone).Names(), ", ")),
			"find out who deletes it (the audit log of the API server says so), then deploy again: that creates it")
	}
	return err
}
