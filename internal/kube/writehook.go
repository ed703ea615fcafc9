package kube

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
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
