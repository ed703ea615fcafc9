package track

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"deployer/internal/kube"
	"deployer/track/pods"
)

// unprobed is a Deployment whose container has no probe.
func unprobed(available int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "web", "namespace": "prod", "uid": "1", "generation": int64(1)},
		"spec": map[string]any{"replicas": int64(1), "template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "app"}}}}},
		"status": map[string]any{"observedGeneration": int64(1), "replicas": int64(1), "updatedReplicas": int64(1),
			"readyReplicas": available, "availableReplicas": available},
	}}
}

// TestNoTimeToStay: a rollout that is ready when time is up doesn't fail for the
// moment it should have stayed so, unless its containers have crashed before.
func TestNoTimeToStay(t *testing.T) {
	for name, c := range map[string]struct {
		restarts int
		want     State
	}{
		"fresh":   {0, Ready},
		"crashed": {1, Progressing},
	} {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		s := newTrackedObject(Target{ID: kube.IDOf(unprobed(0)), Baseline: unprobed(0), Changed: true}, &Options{}, now)
		pod := pods.NewHistory(pods.Pod{}, pods.Policy{})
		pod.Update(pods.Pod{Ready: true, Containers: []pods.Container{{Name: "app", Ready: true, Restarts: c.restarts}}})
		s.newPods.byUID[types.UID("p")] = pod
		s.update(unprobed(0), now)
		s.status, _ = s.evaluate(now)
		s.update(unprobed(1), now)
		if s.status, _ = s.evaluate(now); s.status.State != Progressing {
			t.Errorf("%s: %s as soon as it is ready, want %s for a moment", name, s.status.State, Progressing)
		}
		s.waiveStability()
		if got, _ := s.evaluate(now); got.State != c.want {
			t.Errorf("%s: %s when time is up, want %s", name, got.State, c.want)
		}
	}
}

// TestRestartIsNoRecovery: a container without a probe looks ready between its
// crashes, which is told only when it lasts.
func TestRestartIsNoRecovery(t *testing.T) {
	web := unprobed(0)
	begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := newTrackedObject(Target{ID: kube.IDOf(web), Baseline: web, Changed: true}, &Options{}, begun)
	s.update(web, begun)
	s.newPods.byUID[types.UID("p")] = pods.NewHistory(pods.Pod{}, pods.Policy{Unchanged: true})
	for i, step := range []struct {
		at    time.Duration
		ready bool
		want  EventKind
	}{
		{1 * time.Second, false, ProblemSeen},
		{20 * time.Second, true, ""}, // it runs again
		{22 * time.Second, false, ""},
		{60 * time.Second, true, ""},
		{64 * time.Second, true, ""},
		{66 * time.Second, true, Recovered},
	} {
		container := pods.Container{Name: "app", Ready: step.ready, Restarts: 1, State: pods.State{Running: step.ready, LastTermination: &pods.Termination{ExitCode: 1}}}
		if !step.ready {
			container.Waiting.Reason = "CrashLoopBackOff"
		}
		s.newPods.byUID["p"].Update(pods.Pod{Ready: step.ready, Containers: []pods.Container{container}})
		before := s.status
		s.status, _ = s.evaluate(begun.Add(step.at))
		if got, _ := changeOf(before, s.status); got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
}

// Events of the object that was replaced by a recreated one may come after the recreation. They are about another object.
func TestEventsOfTheReplacedObjectAreIgnored(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	version := func(uid, version string, generation int64) *unstructured.Unstructured {
		obj := unprobed(0)
		obj.SetUID(types.UID(uid))
		obj.SetResourceVersion(version)
		obj.SetGeneration(generation)
		return obj
	}
	created := version("new", "200", 1)
	s := newTrackedObject(Target{ID: kube.IDOf(created), Baseline: created, Changed: true}, &Options{}, now)
	s.update(version("old", "150", 7), now)
	s.markGone(version("old", "160", 7))
	s.update(version("new", "210", 1), now)
	if s.observed.isGone || s.observed.object.GetUID() != "new" || len(s.observed.notes) > 0 || s.observed.generation != 1 {
		t.Errorf("observed %+v, want the new object without a note", s.observed)
	}
	s.update(version("other", "220", 1), now)
	if s.observed.object.GetUID() != "other" {
		t.Errorf("observed %s, want the object that took its name later", s.observed.object.GetUID())
	}
}

// TestAnnotatedFasterThanAStatusFollows fails if a rollout never ends because others annotate the Deployment all the time, each time in
// a new generation.
func TestAnnotatedFasterThanAStatusFollows(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		observed int64
		want     State
	}{
		"the change is seen, not all annotations": {7, Ready},
		"the change isn't seen":                   {2, Progressing},
	} {
		web := unprobed(1)
		web.SetGeneration(3)
		s := newTrackedObject(Target{ID: kube.IDOf(web), Baseline: web.DeepCopy(), Changed: true}, &Options{}, now)
		web.SetGeneration(9)
		web.Object["status"].(map[string]any)["observedGeneration"] = c.observed
		s.update(web, now)
		if got, _ := s.evaluate(now); got.State != c.want {
			t.Errorf("%s: %s (%s), want %s", name, got.State, got.Message, c.want)
		}
	}
}
