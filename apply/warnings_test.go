package apply_test

import (
	"testing"

	"deployer/apply"
	"deployer/internal/kube"
)

// TestServerWarningsNameTheirObject holds that what the API server warns of in its
// answer to a dry run is in the plan, once and with the object.
func TestServerWarningsNameTheirObject(t *testing.T) {
	s := begin(t)
	const old = `
apiVersion: v1
kind: Endpoints
metadata: {name: old}
subsets: [{addresses: [{ip: 192.0.2.1}], ports: [{port: 80}]}]
`
	p := s.plan(old)
	want := apply.Warning{ID: kube.ID{Kind: "Endpoints", Namespace: s.owner.Namespace, Name: "old"}, Text: "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"}
	found := 0
	for _, w := range p.Warnings {
		w.Source = ""
		if w == want {
			found++
		}
	}
	if found != 1 {
		t.Errorf("warnings %+v, want one %+v", p.Warnings, want)
	}
}
