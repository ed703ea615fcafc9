package chart

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/getter"
)

// Getters returns Helm's getters, which download from URLs, with one of our own for http and
// https: Helm's sends credentials on to servers to which it is redirected, and reads answers
// of any size.
func (s Settings) Getters(options ...getter.Option) getter.Providers {
	providers := getter.All(s.EnvSettings(), options...)
	i := slices.IndexFunc(providers, func(p getter.Provider) bool { return p.Provides("https") })
	providers[i].New = func(more ...getter.Option) (getter.Getter, error) {
		defaults := []getter.Option{getter.WithTimeout(getter.DefaultHTTPTimeout * time.Second)}
		return &httpGetter{stats: s.TransferStats, options: slices.Concat(defaults, more, options)}, nil
	}
	return providers
}

// An httpGetter downloads from URLs. It takes Helm's options, and keeps those of earlier
// calls, as Helm's does: a signature is downloaded with the options of its archive.
type httpGetter struct {
	stats   *TransferStats
	options []getter.Option
	last    httpOptions // that client was made for
	client  *http.Client
}

// Get downloads from a URL.
// (helm.sh/helm/v3/pkg/getter/httpgetter.go)
func (g *httpGetter) Get(href string, options ...getter.Option) (*bytes.Buffer, error) {
	g.options = append(g.options, options...)
	o, err := readHTTPOptions(g.options)
	if err != nil {
		return nil, err
	}
	request, err := o.request(href)
	if err != nil {
		return nil, err
	}
	if g.client == nil || g.last != o {
		if g.client, err = o.client(g.stats, href); err != nil {
			return nil, err
		}
		g.last = o
	}
	answer, err := g.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("failed to fetch %s : %s%s", href, answer.Status, withheldCredentialsNote(request, answer))
	}
	data := &bytes.Buffer{}
	_, err = data.ReadFrom(answer.Body)
	return data, err
}

// withheldCredentialsNote explains a refusal by a server that was given no credentials because
// another one had redirected to it.
func withheldCredentialsNote(asked *http.Request, answer *http.Response) string {
	_, _, has := asked.BasicAuth()
	if !has || !leftOrigin(answer.Request) ||
		answer.StatusCode != http.StatusUnauthorized && answer.StatusCode != http.StatusForbidden {
		return ""
	}
	return fmt.Sprintf(" by %s, to which it redirects; credentials are not sent on to another host, port or scheme", origin(answer.Request.URL))
}

// httpOptions are those of Helm's options for getters that fetching by HTTP takes.
type httpOptions struct {
	url                string // that the credentials are for
	accept, agent      string
	username, password string
	passCredentials    bool
	tls                Access // TLS settings only
	timeout            time.Duration
}

// readHTTPOptions reads Helm's options. They are functions that set unexported fields of Helm's
// getter, so it applies them to one.
func readHTTPOptions(options []getter.Option) (httpOptions, error) {
	helms, err := getter.NewHTTPGetter(options...)
	if err != nil {
		return httpOptions{}, err
	}
	return httpOptionsOf(helms)
}

// httpOptionsOf reads the fields of Helm's getter. A field that another version of Helm calls or types otherwise is an
// error.
func httpOptionsOf(helms any) (httpOptions, error) {
	opts := reflect.Indirect(reflect.ValueOf(helms)).FieldByName("opts")
	var unknown []string
	field := func(name string, kind reflect.Kind) (f reflect.Value, ok bool) {
		if opts.Kind() == reflect.Struct {
			f = opts.FieldByName(name)
		}
		if f.Kind() != kind {
			unknown = append(unknown, name)
		}
		return f, f.Kind() == kind
	}
	text := func(name string) string {
		f, _ := field(name, reflect.String)
		return f.String()
	}
	yes := func(name string) bool {
		f, ok := field(name, reflect.Bool)
		return ok && f.Bool()
	}
	out := httpOptions{
		url: text("url"), accept: text("acceptHeader"), agent: text("userAgent"),
		username: text("username"), password: text("password"), passCredentials: yes("passCredentialsAll"),
		tls: Access{CertFile: text("certFile"), KeyFile: text("keyFile"), CAFile: text("caFile"), InsecureSkipTLS: yes("insecureSkipVerifyTLS")},
	}
	if f, ok := field("timeout", reflect.Int64); ok {
		out.timeout = time.Duration(f.Int())
	}
	if len(unknown) > 0 {
		return httpOptions{}, fmt.Errorf("this version of Helm's HTTP getter has no option %s", strings.Join(unknown, ", "))
	}
	return out, nil
}

// mayAuthenticate reports whether the credentials are for the server of href.
func (o httpOptions) mayAuthenticate(href string) bool {
	return o.passCredentials || sameHost(o.url, href)
}

func (o httpOptions) request(href string) (*http.Request, error) {
	if _, err := url.Parse(o.url); err != nil {
		return nil, fmt.Errorf("unable to parse getter URL: %w", err)
	}
	request, err := http.NewRequest(http.MethodGet, href, nil)
	if err != nil {
		return nil, err
	}
	helms := "Helm/" + chartutil.DefaultCapabilities.HelmVersion.Version[1:] // which is "v3.x"
	request.Header.Set("User-Agent", cmp.Or(o.agent, helms))
	if o.accept != "" {
		request.Header.Set("Accept", o.accept)
	}
	if o.username != "" && o.password != "" && o.mayAuthenticate(href) {
		request.SetBasicAuth(o.username, o.password)
	}
	return request, nil
}

// client is for one server: where it redirects to gets no credentials, and no client
// certificate.
func (o httpOptions) client(stats *TransferStats, href string) (*http.Client, error) {
	access := o.tls
	if !o.mayAuthenticate(href) {
		access.CertFile, access.KeyFile = "", ""
	}
	sameOrigin, err := access.httpTransport()
	if err != nil {
		return nil, err
	}
	access.CertFile, access.KeyFile = "", ""
	otherOrigin, err := access.httpTransport()
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: stats.count(redirectGuard{sameOrigin: sameOrigin, otherOrigin: otherOrigin, sent: new(atomic.Int32)}), Timeout: o.timeout}, nil
}

// httpTransport is one as Helm's HTTP getter makes it.
func (a Access) httpTransport() (*http.Transport, error) {
	transport := &http.Transport{DisableCompression: true, Proxy: http.ProxyFromEnvironment}
	if !a.hasTLSSettings() {
		return transport, nil
	}
	config, err := a.tlsConfig()
	if err != nil {
		return nil, err
	}
	transport.TLSClientConfig = config
	return transport, nil
}
