package apply_test

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply"
	"deployer/apply/provenance"
	"deployer/internal/kube"
	"deployer/internal/kubetest"
)

func TestMain(m *testing.M) { kubetest.Main(m, 8) }

// TestPlanIsApplied plans the objects of a release as other packages do, and applies what was planned.
func TestPlanIsApplied(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	namespace := c.Namespace(t)
	ctx := t.Context()
	settings := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   map[string]any{"name": "settings"},
		"data":       map[string]any{"greeting": "Hello"},
	}}

	applier := apply.New(kube.New(c.Config(), namespace), provenance.Owner{Release: "shop", Namespace: namespace}, apply.Options{})
	plan, err := applier.Plan(ctx, apply.Request{Objects: []kube.Manifest{{Object: settings}}})
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, wave := range plan.Waves {
		for _, change := range wave.Changes {
			seen = append(seen, fmt.Sprintf("planned: %s %s", change.Action, change.ID.Name))
		}
		err := applier.Run(ctx, wave.Changes, func(done *apply.Change) {
			seen = append(seen, fmt.Sprintf("done: %s %s", done.Action, done.ID.Name))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"planned: create settings", "done: create settings"}; !slices.Equal(seen, want) {
		t.Errorf("seen = %q, want %q", seen, want)
	}
}
