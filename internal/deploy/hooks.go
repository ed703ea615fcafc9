package deploy

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	helmtime "helm.sh/helm/v3/pkg/time"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/chart"
	"deployer/internal/kube"
	"deployer/track"
)

// hooksFor returns the hooks of one event in the order in which they run: by weight, then
// by name. Equal ones keep Helm's order of kinds.
// (helm.sh/helm/v3/pkg/action/hooks.go)
func hooksFor(event helmrelease.HookEvent, hooks []*helmrelease.Hook) []*helmrelease.Hook {
	out := slices.DeleteFunc(slices.Clone(hooks), func(h *helmrelease.Hook) bool { return !slices.Contains(h.Events, event) })
	slices.SortStableFunc(out, func(a, b *helmrelease.Hook) int {
		return cmp.Or(cmp.Compare(a.Weight, b.Weight), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// objectsOfHooks returns the objects of hooks, each hook once, even if it runs at two
// events. Helm records invalid hooks, such as ones without a name, and fails only when
// they run; unusable has their errors.
func objectsOfHooks(hooks []*helmrelease.Hook) (out []kube.Manifest, unusable []error) {
	seen := map[*helmrelease.Hook]bool{}
	for _, h := range hooks {
		if seen[h] {
			continue
		}
		seen[h] = true
		objects, err := objectsOfHook(h)
		if err != nil {
			unusable = append(unusable, err)
			continue
		}
		out = append(out, objects...)
	}
	return out, unusable
}

// objectsOfHook returns the objects of a hook: one, unless it is a list. As in Helm, the annotations of the list
// make it a hook and say when its objects are deleted; here each object gets them.
// helm.sh/helm/v3/pkg/releaseutil/manifest_sorter.go
func objectsOfHook(h *helmrelease.Hook) ([]kube.Manifest, error) {
	objects, err := chart.ParseHook(h)
	for _, m := range objects {
		if m.Object.GetKind() == h.Kind {
			continue // the hook itself, and not an item of a list
		}
		annotations := m.Object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[helmrelease.HookAnnotation] = joined(h.Events)
		delete(annotations, helmrelease.HookDeleteAnnotation) // Helm doesn't read it here
		if len(h.DeletePolicies) > 0 {
			annotations[helmrelease.HookDeleteAnnotation] = joined(h.DeletePolicies)
		}
		m.Object.SetAnnotations(annotations)
	}
	return objects, err
}

func joined[T ~string](words []T) string {
	var out []string
	for _, w := range words {
		out = append(out, string(w))
	}
	return strings.Join(out, ",")
}

// copyRuns copies the last runs of hooks to the same hooks of a record.
func copyRuns(from, to []*helmrelease.Hook) {
	for _, h := range from {
		for _, same := range to {
			if same.Path == h.Path && same.Kind == h.Kind && same.Name == h.Name && !h.LastRun.StartedAt.IsZero() {
				same.LastRun = h.LastRun
			}
		}
	}
}

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
		err = r.track(ctx, r.targets(ran.objects), nil)
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
		r.tell(Applied, Event{Step: StepHook, Change: &apply.Change{ID: kube.IDOf(obj), Source: m.Source, Action: decide.Create, Applied: obj}})
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
	logs := r.d.Settings.Track.Logs
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

// maxPodLog bounds what is read of one container's log, in bytes.
const maxPodLog = 16 << 20

// A PodLog is what one container of a hook has written.
type PodLog struct {
	Pod       string
	Container string // empty when the pod has only one
	Text      string
}

// reportLogs reports the logs of the hooks' pods, as long as these exist. A log that
// can't be read is only a warning: the hooks have ended.
func (r *hookRunner) reportLogs(ctx context.Context, hooks []ranHook) {
	if !r.op.showLogs {
		return
	}
	typed := r.d.Cluster.Typed().CoreV1()
	ctx = cleanupContext(ctx)
	for _, h := range hooks {
		for _, obj := range h.objects {
			pods, err := podsOf(ctx, typed.Pods(obj.GetNamespace()), obj)
			if err != nil {
				r.warn(fmt.Sprintf("finding the pods of %s: %v", kube.IDOf(obj), err))
			}
			for _, pod := range pods {
				r.reportLogsOf(ctx, typed.Pods(pod.Namespace), &pod)
			}
		}
	}
}

func (r *hookRunner) reportLogsOf(ctx context.Context, client corev1client.PodInterface, pod *corev1.Pod) {
	limit := int64(maxPodLog)
	for _, c := range pod.Spec.Containers {
		text, err := client.GetLogs(pod.Name, &corev1.PodLogOptions{Container: c.Name, LimitBytes: &limit}).DoRaw(ctx)
		if err != nil {
			r.warn(fmt.Sprintf("reading the log of Pod/%s/%s: %v", pod.Namespace, pod.Name, err))
			continue
		}
		log := PodLog{Pod: pod.Name, Container: c.Name, Text: string(text)}
		if len(pod.Spec.Containers) == 1 {
			log.Container = ""
		}
		r.tell(PodLogged, Event{PodLog: log})
	}
}

// podsOf returns the pods of a hook's object: a Pod itself, or those of a Job.
func podsOf(ctx context.Context, client corev1client.PodInterface, obj *unstructured.Unstructured) ([]corev1.Pod, error) {
	switch kube.IDOf(obj).GroupKind() {
	case kube.PodKind:
		pod, err := client.Get(ctx, obj.GetName(), metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return []corev1.Pod{*pod}, nil
	case kube.JobKind:
		list, err := client.List(ctx, metav1.ListOptions{LabelSelector: batchv1.ControllerUidLabel + "=" + string(obj.GetUID())})
		if err != nil {
			return nil, err
		}
		return list.Items, nil
	}
	return nil, nil
}
