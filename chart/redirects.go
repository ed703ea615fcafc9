package chart

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync/atomic"
)

// What a server may send. Helm's loader unpacks at most 100 MiB of a chart; the largest
// public index has about 30 MiB. (helm.sh/helm/v3/pkg/chart/loader/archive.go)
const (
	maxAnswer = 128 << 20
	maxIndex  = 64 << 20

	// maxRequests is how many requests one client makes. A chart takes fewer than ten, its dependencies as many each.
	maxRequests = 1000
)

// A redirectGuard sends requests by sameOrigin, and those that were redirected to another
// server by otherOrigin, without credentials: they are for the server that was asked. Go's
// client withholds them from another host only, not from another port or scheme.
// Answers that are too large are errors.
type redirectGuard struct {
	sameOrigin, otherOrigin http.RoundTripper
	sent                    *atomic.Int32 // requests so far
	servers                 []string      // only requests to these, URLs or references, go by sameOrigin; nil means all
}

func (g redirectGuard) RoundTrip(q *http.Request) (*http.Response, error) {
	if g.sent.Add(1) > maxRequests {
		return nil, fmt.Errorf("%s: more than %d requests: it redirects, or has more pages, without end", withoutSecrets(*q.URL), maxRequests)
	}
	transport, asked := g.sameOrigin, q
	if leftOrigin(q) {
		transport = g.otherOrigin
		stripped := *q // a transport must not change the request
		stripped.Header = q.Header.Clone()
		for _, name := range []string{"Authorization", "Cookie", "Proxy-Authorization"} {
			stripped.Header.Del(name)
		}
		address := *q.URL
		address.User = nil // Go makes an Authorization of it
		stripped.URL = &address
		q = &stripped
	} else if !g.isFor(q.URL) {
		transport = g.otherOrigin // a server that gives out tokens gets the password for them
	}
	answer, err := transport.RoundTrip(q)
	if err != nil {
		return nil, err
	}
	answer.Status += withheldCredentialsNote(asked, answer)
	return limited(answer)
}

// isFor reports whether a URL is of one of the servers. References to registries, and hosts, have no scheme that counts.
func (g redirectGuard) isFor(u *url.URL) bool {
	return g.servers == nil || slices.ContainsFunc(g.servers, func(server string) bool {
		if strings.HasPrefix(server, "http://") || strings.HasPrefix(server, "https://") {
			return sameHost(server, u.String())
		}
		return slices.Contains(registryHosts(server), strings.ToLower(u.Host))
	})
}

// guarded returns a guard with two transports that the function makes: one with the client certificate of a, for servers or
// with PassCredentials for all, and one without it.
func (a Access) guarded(servers []string, transport func(Access) (http.RoundTripper, error)) (redirectGuard, error) {
	g := redirectGuard{sent: new(atomic.Int32)}
	if !a.PassCredentials {
		g.servers = append([]string{}, servers...)
	}
	var err error
	if g.sameOrigin, err = transport(a); err != nil {
		return g, err
	}
	a.CertFile, a.KeyFile = "", ""
	g.otherOrigin, err = transport(a)
	return g, err
}

// withheldCredentialsNote explains a refusal by a server that was given no credentials because
// another one had redirected to it.
func withheldCredentialsNote(asked *http.Request, answer *http.Response) string {
	if !leftOrigin(asked) || answer.StatusCode != http.StatusUnauthorized && answer.StatusCode != http.StatusForbidden {
		return ""
	}
	first := asked
	for first.Response != nil {
		first = first.Response.Request
	}
	if _, _, has := first.BasicAuth(); !has {
		return ""
	}
	return fmt.Sprintf(" by %s, to which it redirects; credentials are not sent on to another host, port or scheme", origin(asked.URL))
}

// leftOrigin reports whether a request follows a redirect from another host, port or
// scheme, or one before it did.
func leftOrigin(q *http.Request) bool {
	for here := q; here.Response != nil && here.Response.Request != nil; {
		before := here.Response.Request
		if origin(before.URL) != origin(q.URL) {
			return true
		}
		here = before
	}
	return false
}

// origin is the server of a URL, with its port.
func origin(u *url.URL) string {
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + host + ":" + port
}

// sameHost reports whether two URLs have one scheme, host and port: credentials
// for one are no other server's business.
func sameHost(a, b string) bool {
	u, err := url.Parse(a)
	if err != nil {
		return false
	}
	v, err := url.Parse(b)
	return err == nil && origin(u) == origin(v)
}

// limited makes reading more of an answer than its kind may have an error.
func limited(answer *http.Response) (*http.Response, error) {
	limit, from := int64(maxAnswer), answer.Request.URL
	if path.Base(from.Path) == "index.yaml" {
		limit = maxIndex
	}
	tooLarge := fmt.Errorf("%s sends more than %d MiB", withoutSecrets(*from), limit>>20)
	if answer.Request.Method != http.MethodHead && answer.ContentLength > limit {
		answer.Body.Close()
		return nil, tooLarge
	}
	answer.Body = &limitedBody{ReadCloser: answer.Body, left: limit, err: tooLarge}
	return answer, nil
}

type limitedBody struct {
	io.ReadCloser
	left int64
	err  error
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, b.err
	}
	return n, err
}
