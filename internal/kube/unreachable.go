package kube

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// unreachable is Helm's message for a cluster that can't be reached. Scripts look for it.
const unreachable = "Kubernetes cluster unreachable"

// An UnreachableError says that the API server couldn't be connected to, that its
// certificate isn't trusted, or that there is no usable configuration.
type UnreachableError struct{ err error }

func (e *UnreachableError) Error() string { return unreachable + ": " + e.err.Error() }
func (e *UnreachableError) Unwrap() error { return e.err }

// Hint says which settings choose the cluster.
func (e *UnreachableError) Hint() string {
	if errors.As(e.err, new(*tls.CertificateVerificationError)) {
		return "is this the right cluster? Give its certificate authority with --kube-ca-file, or the server name in its certificate with --kube-tls-server-name"
	}
	return "is this the right cluster, and is it up? It is named by --kubeconfig, --kube-context or KUBECONFIG"
}

// wrapUnreachable sends a request. The error is an *UnreachableError if there is no connection.
func wrapUnreachable(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	answer, err := next.RoundTrip(r)
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && (dial.Op == "dial" || dial.Op == "proxyconnect") {
		return nil, &UnreachableError{dial}
	}
	if untrusted := (*tls.CertificateVerificationError)(nil); errors.As(err, &untrusted) {
		return nil, &UnreachableError{untrusted}
	}
	return answer, err
}

// IsConnectionFailure reports whether a request got no answer because there was no connection, or it broke.
func IsConnectionFailure(err error) bool {
	return utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) ||
		utilnet.IsHTTP2ConnectionLost(err) || utilnet.IsTimeout(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, syscall.ECONNABORTED) || errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.EHOSTUNREACH)
}
