package kubetest

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
)

// Certificate makes a certificate of 127.0.0.1 and of hosts, and gives it as a
// caBundle too.
func Certificate(t testing.TB, hosts ...string) (tls.Certificate, string) {
	t.Helper()
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, hosts)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return pair, base64.StdEncoding.EncodeToString(certPEM)
}

// Converter serves a webhook that converts custom resources between versions, as long as up says so. convert makes an
// object one of another version, whose name is set already; without it versions differ by name only.
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#webhook-request-and-response
func Converter(t testing.TB, cert tls.Certificate, up func() bool, convert ...func(obj *unstructured.Unstructured)) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			Request struct {
				UID               string                      `json:"uid"`
				DesiredAPIVersion string                      `json:"desiredAPIVersion"`
				Objects           []unstructured.Unstructured `json:"objects"`
			} `json:"request"`
		}
		switch err := json.NewDecoder(r.Body).Decode(&review); {
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		case !up():
			http.Error(w, "no endpoints available", http.StatusServiceUnavailable)
			return
		}
		for _, obj := range review.Request.Objects {
			if obj.GetAPIVersion() == review.Request.DesiredAPIVersion {
				continue
			}
			obj.SetAPIVersion(review.Request.DesiredAPIVersion)
			for _, f := range convert {
				f(&obj)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": map[string]any{
			"uid": review.Request.UID, "result": map[string]any{"status": "Success"}, "convertedObjects": review.Request.Objects,
		}})
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}
