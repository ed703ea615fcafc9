package kube

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// Prevents that a question whose answer the API server doesn't store needs the lock of a release, as a write does.
func TestWhichRequestsWrite(t *testing.T) {
	for _, c := range []struct {
		method, path string
		want         bool
	}{
		{http.MethodGet, "/api/v1/namespaces/prod/secrets", false},
		{http.MethodPost, "/api/v1/namespaces/prod/secrets", true},
		{http.MethodPatch, "/apis/apps/v1/namespaces/prod/deployments/web", true},
		{http.MethodPatch, "/apis/apps/v1/namespaces/prod/deployments/web?dryRun=All", false},
		{http.MethodDelete, "/apis/apps/v1/namespaces/prod/deployments/web", true},
		{http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", false},
		{http.MethodPost, "/apis/authentication.k8s.io/v1/selfsubjectreviews", false},
		{http.MethodPost, "/k8s/clusters/c-1/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", false},
	} {
		if got := isWrite(httptest.NewRequest(c.method, c.path, nil)); got != c.want {
			t.Errorf("isWrite(%s %s) = %t, want %t", c.method, c.path, got, c.want)
		}
	}
}
