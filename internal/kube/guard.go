package kube

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Guarded gives a context for changing the cluster. begin is called before each request
// that would change something. If it fails, the request isn't sent and fails with that
// error; otherwise over is called when the request has ended. A request that is under
// way when the context ends is awaited for a short time: otherwise its outcome would be
// unknown, and it might happen after all else.
func Guarded(ctx context.Context, begin func(context.Context) (over func(), err error)) context.Context {
	return context.WithValue(ctx, guardKey{}, begin)
}

// Unguarded gives a context without what Guarded does.
func Unguarded(ctx context.Context) context.Context {
	return context.WithValue(ctx, guardKey{}, nil)
}

type guardKey struct{}

// guard makes a configuration's clients ask, and await.
func guard(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return guardedTransport{next} })
}

type guardedTransport struct{ next http.RoundTripper }

func (g guardedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	begin, ok := r.Context().Value(guardKey{}).(func(context.Context) (func(), error))
	if !ok || !isWrite(r) {
		return g.next.RoundTrip(r)
	}
	over, err := begin(r.Context())
	if err != nil {
		if r.Body != nil {
			r.Body.Close() // as a RoundTripper must
		}
		return nil, err
	}
	ctx, cancel := WithGracePeriod(r.Context(), stopLimit)
	ctx, cancelAll := context.WithTimeout(ctx, serverLimit)
	end := sync.OnceFunc(func() { cancelAll(); cancel(); over() })
	response, err := g.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		end()
		return nil, err
	}
	response.Body = &guardedBody{response.Body, end}
	return response, nil
}

// guardedBody is the body of an answer; closing it ends the request's context.
type guardedBody struct {
	io.ReadCloser
	end func()
}

func (a *guardedBody) Close() error {
	defer a.end()
	return a.ReadCloser.Close()
}

const (
	// serverLimit is how long the API server works on a request before it gives
	// up, and what remains for its answer. k8s.io/apiserver/pkg/endpoints/handlers
	serverLimit = 36 * time.Second

	// stopLimit is how long an answer is awaited after the context has ended: what
	// stops us doesn't wait much longer, and there is still something to record.
	stopLimit = 5 * time.Second
)

// WithGracePeriod gives a context that ends so much later than ctx, unless that has ended
// already.
func WithGracePeriod(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	if ctx.Err() != nil {
		return context.WithCancel(ctx)
	}
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(by, cancel)
		context.AfterFunc(out, func() { timer.Stop() })
	})
	return out, func() {
		stop()
		cancel()
	}
}

// isWrite says whether a request would change something. Questions about
// permissions take the form of creating an object.
func isWrite(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	for _, value := range r.URL.Query()["dryRun"] {
		if value == "All" {
			return false
		}
	}
	return !strings.HasPrefix(r.URL.Path, "/apis/authorization.k8s.io/")
}
