package kube

import (
	"context"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"
)

// Guarded gives a context under which nothing in the cluster is changed without
// asking: may is called before each request that would change something, and its
// error, if any, is that of the request, which isn't sent.
func Guarded(ctx context.Context, may func(context.Context) error) context.Context {
	return context.WithValue(ctx, guardKey{}, may)
}

// Unguarded gives a context without the question of Guarded.
func Unguarded(ctx context.Context) context.Context {
	return context.WithValue(ctx, guardKey{}, nil)
}

type guardKey struct{}

// guard makes a configuration's clients ask.
func guard(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return guarded{next} })
}

type guarded struct{ next http.RoundTripper }

func (g guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if may, ok := r.Context().Value(guardKey{}).(func(context.Context) error); ok && changes(r) {
		if err := may(r.Context()); err != nil {
			if r.Body != nil {
				r.Body.Close() // as a RoundTripper must
			}
			return nil, err
		}
	}
	return g.next.RoundTrip(r)
}

// changes says whether a request would change something. Questions about
// permissions take the form of creating an object.
func changes(r *http.Request) bool {
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
