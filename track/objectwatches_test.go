package track

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"deployer/internal/kube"
)

// A controller may write a status though the definition of its kind has no status subresource, as that of Velero's
// backups: its absence doesn't say that nobody will.
func TestStatusWithoutSubresource(t *testing.T) {
	const kinds = `{"openapi": "3.0.0", "components": {"schemas": {
		"io.velero.v1.Backup": {"type": "object", "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "status": {"type": "object"}}, "x-kubernetes-group-version-kind": [{"group": "velero.io", "version": "v1", "kind": "Backup"}]},
		"io.velero.v1.Any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-group-version-kind": [{"group": "velero.io", "version": "v1", "kind": "Any"}]},
		"io.velero.v1.Plain": {"type": "object", "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "spec": {"type": "object"}}, "x-kubernetes-group-version-kind": [{"group": "velero.io", "version": "v1", "kind": "Plain"}]}}}}`
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/openapi/v3" {
			_, _ = io.WriteString(out, `{"paths": {"apis/velero.io/v1": {"serverRelativeURL": "/openapi/v3/apis/velero.io/v1"}}}`)
			return
		}
		_, _ = io.WriteString(out, kinds)
	}))
	defer server.Close()
	w := objectWatches{session: &session{cluster: kube.New(&rest.Config{Host: server.URL}, "prod")}}
	for kind, want := range map[string]bool{"Backup": true, "Plain": false, "Any": false, "Unknown": false} {
		if got := w.declaresStatus(t.Context(), schema.GroupVersionKind{Group: "velero.io", Version: "v1", Kind: kind}); got != want {
			t.Errorf("%s has a status: %t, want %t", kind, got, want)
		}
	}
}
