package track

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"deployer/internal/kube"
	"deployer/track/pods"
)

// TestNoTimeToStay: a rollout that is ready when time is up doesn't fail for the
// moment it should have stayed so, unless its containers have crashed before.
func TestNoTimeToStay(t *testing.T) {
	web := func(available int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"name": "web", "namespace": "prod", "uid": "1", "generation": int64(1)},
			"spec": map[string]any{"replicas": int64(1), "template": map[string]any{"spec": map[string]any{
				"containers": []any{map[string]any{"name": "app"}}}}},
			"status": map[string]any{"observedGeneration": int64(1), "replicas": int64(1), "updatedReplicas": int64(1),
				"readyReplicas": available, "availableReplicas": available},
		}}
	}
	for name, c := range map[string]struct {
		restarts int
		want     State
	}{
		"fresh":   {0, Ready},
		"crashed": {1, Progressing},
	} {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		s := newSubject(Target{ID: kube.IDOf(web(0)), Baseline: web(0), Changed: true}, &Options{}, now)
		pod := pods.Remember(pods.Pod{}, pods.Rules{})
		pod.See(pods.Pod{Ready: true, Containers: []pods.Container{{Name: "app", Ready: true, Restarts: c.restarts}}})
		s.pods[types.UID("p")] = pod
		s.see(web(0), now)
		s.judge(now)
		s.see(web(1), now)
		if got := s.judge(now); got.State != Progressing {
			t.Errorf("%s: %s as soon as it is ready, want %s for a moment", name, got.State, Progressing)
		}
		s.hurry()
		if got := s.judge(now); got.State != c.want {
			t.Errorf("%s: %s when time is up, want %s", name, got.State, c.want)
		}
	}
}
