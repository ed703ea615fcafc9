package chart

import (
	"errors"
	"testing"
)

// TestFetchErrorsArePlain: no function names of libraries, and the flag that helps.
func TestFetchErrorsArePlain(t *testing.T) {
	err := NewRemoteError("oci://127.0.0.1:5000/x", LoadOptions{}, errors.New(
		`failed to perform "FetchReference" on source: Get "https://127.0.0.1:5000/v2/": tls: first record does not look like a TLS handshake`))
	if got, want := err.Error(), `fetching chart oci://127.0.0.1:5000/x: Get "https://127.0.0.1:5000/v2/": tls: first record does not look like a TLS handshake`; got != want {
		t.Errorf("it says %s", got)
	}
	if got, want := err.Hint(), "the server talks HTTP: use --plain-http if that is meant"; got != want {
		t.Errorf("it advises: %s", got)
	}
	err = NewRemoteError("mine/shpo", LoadOptions{}, errors.New(`chart "shpo" matching 1.x not found in mine index. (try 'helm repo update'): no chart name found`))
	if got, want := err.Error(), "fetching chart mine/shpo: chart shpo 1.x not found in the index of repository mine"; got != want {
		t.Errorf("it says %s", got)
	}
}
