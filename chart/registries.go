package chart

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/Masterminds/semver/v3"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/registry"
)

// registryHosts returns the hosts of references such as oci://registry.example.com/charts/web, of
// URLs, and of hosts. Ports belong to them.
func registryHosts(refs ...string) []string {
	hosts := []string{}
	for _, ref := range refs {
		if _, rest, ok := strings.Cut(ref, "://"); ok {
			ref = rest
		}
		host, _, _ := strings.Cut(ref, "/")
		hosts = append(hosts, strings.ToLower(host[strings.LastIndexByte(host, '@')+1:]))
	}
	return hosts
}

// ociRepositories returns the repositories in registries that a chart's dependencies come from.
func ociRepositories(metadata *helmchart.Metadata) []string {
	refs := []string{}
	for _, d := range metadata.Dependencies {
		if d != nil && registry.IsOCI(d.Repository) {
			refs = append(refs, d.Repository)
		}
	}
	return refs
}

// accessTo is the access to the server of ref when the user has named a repository, and ref comes
// from its index: the credentials are for the repository's server, and for a registry on its host.
func (a Access) accessTo(ref, repository string) Access {
	switch {
	case repository == "", a.PassCredentials, sameHost(repository, ref),
		registry.IsOCI(ref) && slices.Equal(registryHosts(repository), registryHosts(ref)):
		return a
	}
	return a.withoutCredentials()
}

func (a Access) withoutCredentials() Access {
	a.Username, a.Password, a.CertFile, a.KeyFile = "", "", "", ""
	return a
}

// plainHTTPFallback switches to HTTP when a registry answers HTTPS with plain HTTP, like the transport
// of Helm's registry client.
// (helm.sh/helm/v3/pkg/registry/fallback.go)
type plainHTTPFallback struct {
	http.RoundTripper
	plain atomic.Bool
}

func (t *plainHTTPFallback) RoundTrip(q *http.Request) (*http.Response, error) {
	if !t.plain.Load() {
		answer, err := t.RoundTripper.RoundTrip(q)
		record, ok := errors.AsType[tls.RecordHeaderError](err)
		if !ok || string(record.RecordHeader[:]) != "HTTP/" {
			return answer, err
		}
		t.plain.Store(true)
	}
	q.URL.Scheme = "http" // in place, because the sender compares the scheme with that of an upload's location
	return t.RoundTripper.RoundTrip(q)
}

// A tagReader reads the lists of tags that Helm's registry client searches for versions. It says which tags the client passes over
// because they begin with v.
type tagReader struct {
	http.RoundTripper
	warn io.Writer

	mu   sync.Mutex
	tags map[string][]string // of the pages so far, by the path of the list
}

func (t *tagReader) RoundTrip(q *http.Request) (*http.Response, error) {
	answer, err := t.RoundTripper.RoundTrip(q)
	path, isList := strings.CutSuffix(q.URL.Path, "/tags/list")
	if err != nil || !isList || answer.StatusCode != http.StatusOK {
		return answer, err
	}
	data, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(data))
	var page struct {
		Tags []string `json:"tags"`
	}
	if json.Unmarshal(data, &page) != nil {
		return answer, nil // the client says so
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tags[path] = append(t.tags[path], page.Tags...)
	if answer.Header.Get("Link") != "" { // there are more pages
		return answer, nil
	}
	if tags := passedOver(t.tags[path]); len(tags) > 0 {
		fmt.Fprintf(t.warn, "WARNING: %s%s: only tags without a v in front are searched for versions. Passed over: %s (to take one: --version %s)\n",
			q.URL.Host, strings.TrimPrefix(path, "/v2"), strings.Join(tags[:min(len(tags), 5)], ", "), tags[0])
	}
	delete(t.tags, path)
	return answer, nil
}

// passedOver are the versions, newest first, among tags that begin with v and have no other tag.
func passedOver(tags []string) []string {
	var versions []*semver.Version
	for _, tag := range tags {
		bare := strings.TrimPrefix(tag, "v")
		version, err := semver.StrictNewVersion(strings.ReplaceAll(bare, "_", "+"))
		if err == nil && bare != tag && !slices.Contains(tags, bare) {
			versions = append(versions, version)
		}
	}
	slices.SortFunc(versions, func(a, b *semver.Version) int { return b.Compare(a) })
	var out []string
	for _, version := range versions {
		out = append(out, "v"+version.String())
	}
	return out
}

// TransferStats counts downloaded and uploaded bytes. The zero value is ready to use; several
// transfers may share one.
type TransferStats struct{ moved, announced atomic.Int64 }

// Bytes returns how many bytes have been transferred, and how many Content-Length headers
// have announced. The latter are fewer when a server sends no Content-Length.
func (t *TransferStats) Bytes() (moved, announced int64) { return t.moved.Load(), t.announced.Load() }

// Reset sets both counts to zero.
func (t *TransferStats) Reset() {
	t.moved.Store(0)
	t.announced.Store(0)
}

// through returns a body whose bytes are counted when they are read.
func (t *TransferStats) through(body io.ReadCloser, length int64) io.ReadCloser {
	t.announced.Add(max(length, 0))
	return counted{body, t}
}

type counted struct {
	io.ReadCloser
	stats *TransferStats
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.stats.moved.Add(int64(n))
	return n, err
}

// count returns a transport whose bodies are counted; nil counts nothing.
func (t *TransferStats) count(transport http.RoundTripper) http.RoundTripper {
	if t == nil {
		return transport
	}
	return countingTransport{transport, t}
}

type countingTransport struct {
	http.RoundTripper
	stats *TransferStats
}

func (t countingTransport) RoundTrip(q *http.Request) (*http.Response, error) {
	if q.Body != nil && q.Body != http.NoBody {
		sent := *q // a transport must not change the request
		sent.Body = t.stats.through(q.Body, q.ContentLength)
		q = &sent
	}
	answer, err := t.RoundTripper.RoundTrip(q)
	if err == nil && q.Method != http.MethodHead { // the Content-Length of HEAD is that of GET
		answer.Body = t.stats.through(answer.Body, answer.ContentLength)
	}
	return answer, err
}
