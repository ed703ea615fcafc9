package deploy

import (
	"context"
	"slices"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/apply"
)

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
