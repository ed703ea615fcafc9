package apply_test

import (
	"fmt"
	"slices"
	"testing"

	"deployer/apply"
	"deployer/internal/kube"
)

// TestServerWarningsNameTheirObject holds that what the API server warns of in its
// answer to a dry run is in the plan, once and with the object.
func TestServerWarningsNameTheirObject(t *testing.T) {
	s := begin(t)
	manifest, want := "", []apply.Warning{}
	for i := range 8 {
		name := fmt.Sprintf("old-%d", i)
		manifest += "---\napiVersion: v1\nkind: Endpoints\nmetadata: {name: " + name + "}\nsubsets: [{addresses: [{ip: 192.0.2.1}], ports: [{port: 80}]}]\n"
		want = append(want, apply.Warning{
			ID:   kube.ID{Kind: "Endpoints", Namespace: s.owner.Namespace, Name: name},
			Text: "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
		})
	}
	var got []apply.Warning
	for _, w := range s.plan(manifest).Warnings {
		if w.Text == want[0].Text {
			got = append(got, apply.Warning{ID: w.ID, Text: w.Text})
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("warnings %+v, want %+v in this order", got, want)
	}
}
