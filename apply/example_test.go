package apply_test

import (
	"context"
	"fmt"
	"log"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply"
	"deployer/internal/kube"
	"deployer/internal/kubetest"
)

func TestMain(m *testing.M) { kubetest.Main(m, 8) }

// Plan the objects of a release, and apply what was planned.
func Example() {
	config, namespace, remove := kubetest.Example()
	defer remove()
	ctx := context.Background()
	settings := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   map[string]any{"name": "settings"},
		"data":       map[string]any{"greeting": "Hello"},
	}}

	applier := apply.New(kube.New(config, namespace), apply.Owner{Release: "shop", Namespace: namespace}, apply.Options{})
	plan, err := applier.Plan(ctx, apply.Request{Objects: []kube.Manifest{{Object: settings}}})
	if err != nil {
		log.Fatal(err)
	}
	for _, wave := range plan.Waves {
		for _, change := range wave.Changes {
			fmt.Println("planned:", change.Action, change.ID.Kind, change.ID.Name)
		}
		err := applier.Run(ctx, wave.Changes, func(done *apply.Change) {
			fmt.Println("done:", done.Action, done.ID.Kind, done.ID.Name)
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// planned: create ConfigMap settings
	// done: create ConfigMap settings
}
