package kubetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Certificate makes a certificate of 127.0.0.1 and of hosts, and gives it as a
// caBundle too.
func Certificate(t testing.TB, hosts ...string) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "webhook"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: hosts, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	bundle := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, bundle
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
