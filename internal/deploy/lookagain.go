package deploy

import (
	"context"

	"deployer/apply"
	"deployer/internal/kube"
)

// lookAgain makes the plan again for what comes after its first done waves: hooks have run, or the run has waited, so
// that the objects may not be any more what they were when the plan was made. The error is a late rejection.
func (r *run) lookAgain(ctx context.Context, done int) (err error) {
	ctx, end := LimitStep(ctx, StepDecide, r.Settings.Timeout)
	defer func() { err = end(err) }()
	if err := r.applier.PlanAgain(ctx, *r.op.request, r.op.Plan, done); err != nil {
		return err
	}
	r.emit(Replanned{Operation: r.op})
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
			if c.Action != apply.Unchanged && c.Action != apply.Keep && (isJob(c.ID) || c.ID.GroupKind() == kube.PodKind) {
				return true
			}
		}
	}
	return false
}
