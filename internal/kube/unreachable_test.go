package kube

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Prevents that a cluster counts as reachable because it is a proxy that can't be connected to.
func TestUnreachableProxy(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := &url.URL{Scheme: "http", Host: listener.Addr().String()}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://cluster.example/version", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = wrapUnreachable(&http.Transport{Proxy: http.ProxyURL(nobody)}, r)
	if !errors.As(err, new(*UnreachableError)) || !IsConnectionFailure(err) {
		t.Errorf("%v", err)
	}
}

// Prevents that a connection panics whose configuration can't be used, or that nobody learns why.
func TestUnusableConfiguration(t *testing.T) {
	for name, config := range map[string]*rest.Config{
		"address":     {Host: "https://a b:1"},
		"certificate": {Host: "https://cluster.example", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("none")}},
	} {
		cluster := New(config, "default")
		_, ofKinds := cluster.ServerInfo(t.Context())
		_, ofWatch := cluster.WatchCRDs(t.Context(), "")
		_, ofList := cluster.Metadata().Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).List(t.Context(), metav1.ListOptions{})
		for _, err := range []error{ofKinds, ofWatch, ofList} {
			if err == nil || !strings.Contains(err.Error(), "connecting to "+config.Host) && !strings.Contains(err.Error(), "must be a URL") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if !errors.As(ofKinds, new(*UnreachableError)) {
			t.Errorf("%s: %v", name, ofKinds)
		}
	}
}
