package deploy

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	helmtime "helm.sh/helm/v3/pkg/time"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/internal/kube"
	"deployer/track"
)

// runHooks runs the hooks of one event one after the other, each to its end, and
// deletes them as their policies say. (helm.sh/helm/v3/pkg/action/hooks.go)
func (r *run) runHooks(ctx context.Context, event helmrelease.HookEvent, hooks []*helmrelease.Hook) error {
	return r.runStep(ctx, HookStep(event), len(hooks), func() error { return (&hookRunner{run: r, event: event}).runAll(ctx, hooks) })
}

// A hookRunner runs the hooks of one event.
type hookRunner struct {
	*run
	event helmrelease.HookEvent
}

func (r *hookRunner) runAll(ctx context.Context, hooks []*helmrelease.Hook) error {
	var ran []ranHook
	var err error
	for i := 0; i < len(hooks) && err == nil; i++ {
		ran, err = r.runNext(ctx, hooks[i], ran)
	}
	r.reportLogs(ctx, ran)
	return errors.Join(err, r.delete(ctx, ran))
}

// runNext runs a hook, unless it has finished, and adds it to those that ran.
func (r *hookRunner) runNext(ctx context.Context, h *helmrelease.Hook, ran []ranHook) ([]ranHook, error) {
	if r.hasFinished(h) {
		found, err := r.findFinished(ctx, h)
		if err != nil {
			return ran, &HookError{Event: r.event, Hook: h.Path, Err: err}
		}
		return append(ran, found), nil
	}
	one, err := r.runOne(ctx, h)
	ran = append(ran, one)
	if err != nil {
		return ran, &HookError{Event: r.event, Hook: h.Path, Err: err}
	}
	return ran, r.recordFinished(ctx, h)
}

// hasFinished reports whether a dead run, in the same attempt, had finished this very
// hook: then it isn't run again.
func (r *hookRunner) hasFinished(h *helmrelease.Hook) bool {
	if !r.op.hasPendingRecord() || r.op.Next.Journal.Hooks[hookKey(r.event, h)] != string(helmrelease.HookPhaseSucceeded) {
		return false
	}
	r.warn(fmt.Sprintf("%s hook %s finished in the killed run and is not run again", r.event, h.Path))
	return true
}

// findFinished finds what a dead run has left of a hook that had finished, so that it is deleted as
// the policies of the hook say.
func (r *hookRunner) findFinished(ctx context.Context, h *helmrelease.Hook) (ranHook, error) {
	ran := ranHook{hook: h}
	manifests, err := objectsOfHook(h)
	if err != nil {
		return ran, err
	}
	for _, m := range manifests {
		obj, err := r.applier.FindHook(ctx, m, r.op.hookAttempt(r.event))
		if err != nil {
			return ran, err
		}
		if obj != nil {
			ran.objects = append(ran.objects, obj)
		}
	}
	return ran, nil
}

// recordFinished records that a hook has succeeded, for a run that may have to continue
// this one.
func (r *hookRunner) recordFinished(ctx context.Context, h *helmrelease.Hook) error {
	if !r.op.notesProgress() {
		return nil
	}
	journal := r.op.Next.Journal
	if journal.Hooks == nil {
		journal.Hooks = map[string]string{}
	}
	journal.Hooks[hookKey(r.event, h)] = string(h.LastRun.Phase)
	return r.untilHeeded(ctx, func() error { return r.lock.Save(ctx, r.op.Next) })
}

// hookKey names a hook and its content at one event.
func hookKey(event helmrelease.HookEvent, h *helmrelease.Hook) string {
	sum := sha256.Sum256([]byte(h.Manifest))
	return fmt.Sprintf("%s %s %x", event, h.Path, sum[:8])
}

// A ranHook is a hook and the objects it consists of in the cluster.
type ranHook struct {
	hook    *helmrelease.Hook
	objects []*unstructured.Unstructured
	failed  bool
}

func (r *hookRunner) runOne(ctx context.Context, h *helmrelease.Hook) (ranHook, error) {
	ran := ranHook{hook: h}
	h.LastRun = helmrelease.HookExecution{StartedAt: helmtime.Now(), Phase: helmrelease.HookPhaseRunning}
	began := time.Now()
	err := r.create(ctx, h, &ran)
	if err == nil {
		err = r.track(ctx, r.targets(ran.objects))
	}
	h.LastRun.CompletedAt = helmtime.Now()
	h.LastRun.Phase = helmrelease.HookPhaseSucceeded
	if ran.failed = err != nil; ran.failed {
		h.LastRun.Phase = helmrelease.HookPhaseFailed
	}
	r.tell(HookRan, Event{Hook: h, Took: time.Since(began), Err: err})
	return ran, err
}

func (r *hookRunner) create(ctx context.Context, h *helmrelease.Hook, ran *ranHook) error {
	manifests, err := objectsOfHook(h)
	if err != nil {
		return err
	}
	for _, m := range manifests {
		obj, err := r.applier.CreateHook(ctx, m, r.op.earlier, r.op.hookAttempt(r.event))
		if err != nil {
			return err
		}
		ran.objects = append(ran.objects, obj)
		r.tell(Applied, Event{Step: StepHook, Change: &apply.Change{ID: kube.IDOf(obj), Source: m.Source, Action: apply.Create, Applied: obj}})
	}
	return nil
}

// trackedHookKinds are the kinds of hooks that are tracked: Jobs and Pods until they end,
// as in Helm; CustomResourceDefinitions until their kind is served, because later objects
// may use it. Other hooks are done when they exist.
// https://helm.sh/docs/topics/charts_hooks/#hooks-and-the-release-lifecycle
var trackedHookKinds = map[schema.GroupKind]bool{
	kube.JobKind: true,
	kube.PodKind: true,
	kube.CRDKind: true,
}

// targets returns the objects of a hook that are tracked until they end.
func (r *hookRunner) targets(objects []*unstructured.Unstructured) []track.Target {
	var targets []track.Target
	logs := r.Settings.Track.Logs
	if logs == track.LogsDefault {
		logs = track.LogsLive // what a hook says is what the user waits for
	}
	for _, obj := range objects {
		id := kube.IDOf(obj)
		if !trackedHookKinds[id.GroupKind()] {
			continue
		}
		targets = append(targets, track.Target{
			ID: id, GVK: obj.GroupVersionKind(), Until: track.UntilComplete, Baseline: obj, Changed: true, Logs: logs,
		})
	}
	return targets
}

// delete deletes the hooks whose delete policy names how they ended, last created first. It does so even
// after the run was stopped, and it also deletes hooks that succeeded before another one failed.
func (r *hookRunner) delete(ctx context.Context, hooks []ranHook) error {
	ctx = cleanupContext(ctx)
	var errs []error
	for _, ran := range slices.Backward(hooks) {
		policy := helmrelease.HookSucceeded
		if ran.failed {
			policy = helmrelease.HookFailed
		}
		if !decide.HasDeletePolicy(ran.hook.DeletePolicies, policy) {
			continue
		}
		for _, obj := range ran.objects {
			errs = append(errs, r.applier.DeleteHook(ctx, obj))
		}
	}
	return errors.Join(errs...)
}
