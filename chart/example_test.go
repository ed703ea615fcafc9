package chart_test

import (
	"context"
	"fmt"
	"log"

	"deployer/chart"
)

// Render a chart without a cluster, and list the objects in it.
func Example() {
	ctx := context.Background()
	web, err := chart.Load(ctx, "../testcharts/web", chart.LoadOptions{})
	if err != nil {
		log.Fatal(err)
	}
	values, err := chart.Values(ctx, []chart.ValuesSource{{Kind: chart.Set, Value: "replicas=3"}}, chart.ValuesOptions{})
	if err != nil {
		log.Fatal(err)
	}
	rendered, err := web.Render(ctx, chart.Input{Release: "shop", Namespace: "default", Values: values})
	if err != nil {
		log.Fatal(err)
	}
	manifests, err := chart.Parse(rendered.Manifest)
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range manifests {
		fmt.Println(m.Object.GetKind(), m.Object.GetName(), "from", m.Source)
	}
	// Output:
	// ConfigMap shop-web from web/templates/configmap.yaml
	// Service shop-web from web/templates/service.yaml
	// Deployment shop-web from web/templates/deployment.yaml
}
