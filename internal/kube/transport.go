package kube

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// WithWriteHook returns a context that calls begin before each request that writes. If
// begin fails, the request isn't sent and fails with that error. Otherwise done is called
// when the request has ended. If ctx ends during a request, the client still waits a short
// time for the answer. Otherwise the outcome would be unknown, and the write could take
// effect after all others.
func WithWriteHook(ctx context.Context, begin func(context.Context) (done func(), err error)) context.Context {
	return context.WithValue(ctx, writeHookKey{}, begin)
}

// WithAwaitedWrites returns a context with a hook that does nothing: if ctx ends during a write, the answer is still awaited.
func WithAwaitedWrites(ctx context.Context) context.Context {
	return WithWriteHook(ctx, func(context.Context) (func(), error) { return func() {}, nil })
}

// WithoutWriteHook returns a context without the hook.
func WithoutWriteHook(ctx context.Context) context.Context {
	return context.WithValue(ctx, writeHookKey{}, nil)
}

type writeHookKey struct{}

// callWriteHook sends a request, and calls the write hook of its context if it writes.
func callWriteHook(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	begin, ok := r.Context().Value(writeHookKey{}).(func(context.Context) (func(), error))
	if !ok || !isWrite(r) {
		return next.RoundTrip(r)
	}
	done, err := begin(r.Context())
	if err != nil {
		if r.Body != nil {
			r.Body.Close() // as a RoundTripper must
		}
		return nil, err
	}
	ctx, cancel := WithGracePeriod(r.Context(), stopLimit)
	ctx, cancelAll := context.WithTimeout(ctx, serverLimit)
	end := sync.OnceFunc(func() { cancelAll(); cancel(); done() })
	response, err := next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		end()
		return nil, err
	}
	response.Body = &writeHookBody{response.Body, end}
	return response, nil
}

// writeHookBody is the body of an answer; closing it ends the request's context.
type writeHookBody struct {
	io.ReadCloser
	end func()
}

func (b *writeHookBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

const (
	// serverLimit is how long the API server works on a request, plus time for the answer.
	// k8s.io/apiserver/pkg/endpoints/handlers
	serverLimit = 36 * time.Second

	// stopLimit is how long an answer is awaited after the context has ended. It is short, so
	// that the outcome can still be recorded before the process is killed.
	stopLimit = 5 * time.Second
)

// isWrite reports whether a request changes anything. Reviews are POST
// requests but don't.
func isWrite(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	return !isReview(r) && !slices.Contains(r.URL.Query()["dryRun"], "All")
}

// isReview reports whether a request asks about permissions or accounts. The address of a cluster may have a path of its own.
func isReview(r *http.Request) bool {
	return strings.Contains(r.URL.Path, "/apis/authorization.k8s.io/") || strings.Contains(r.URL.Path, "/apis/authentication.k8s.io/")
}

// maxAnswer is more than any answer that is read as a whole needs: lists are read in pages. An answer without end would take all
// memory of the machine.
const maxAnswer = 256 << 20

// limitAnswer makes reading more than maxAnswer of an answer an error, except from watches and logs.
func limitAnswer(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	answer, err := next.RoundTrip(r)
	if err == nil && !lastsLong(r) && !strings.HasSuffix(r.URL.Path, "/log") {
		answer.Body = &limitedBody{ReadCloser: answer.Body, left: maxAnswer, request: r.Method + " " + r.URL.Path}
	}
	return answer, err
}

type limitedBody struct {
	io.ReadCloser
	left    int
	request string
}

func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, fmt.Errorf("the API server answers %s with more than %d MiB", b.request, maxAnswer>>20)
	}
	return n, err
}

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
