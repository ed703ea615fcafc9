package track

import (
	"testing"
	"time"

	"deployer/internal/kube"
)

// A kind of another group that is named like a built-in one has neither ReplicaSets nor events of
// volumes and load balancers to look up. A look-up whose time never moves keeps the wait busy.
func TestNothingIsLookedUpForAKindOfAnotherGroup(t *testing.T) {
	for _, kind := range []string{"Deployment", "PersistentVolumeClaim", "Service"} {
		object := normalised(t, map[string]any{"apiVersion": "example.com/v1", "kind": kind, "status": map[string]any{"observedGeneration": float64(1)}})
		obj := newTrackedObject(Target{ID: kube.IDOf(object), Baseline: object, Changed: true}, &Options{}, time.Now())
		obj.lookups.isSlow = true
		if at := (&wait{}).nextLookupAt(obj); !at.IsZero() {
			t.Errorf("%s of example.com: the next look-up is at %s, want none", kind, at)
		}
	}
}
