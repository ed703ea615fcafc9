package kube

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"testing"
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
