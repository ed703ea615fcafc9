package chart

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A witness is a server that remembers the credentials it was given.
type witness struct {
	*httptest.Server
	lock  sync.Mutex
	asked int
	given []string
}

func (w *witness) ServeHTTP(answer http.ResponseWriter, q *http.Request) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.asked++
	if header := q.Header.Get("Authorization"); header != "" {
		w.given = append(w.given, q.URL.Path+" "+header)
	}
	if q.TLS != nil && len(q.TLS.PeerCertificates) > 0 {
		w.given = append(w.given, q.URL.Path+" a client certificate")
	}
	http.Error(answer, "who are you?", http.StatusUnauthorized)
}

// redirectTo is a server on another port that wants a password and sends all who know it on.
func redirectTo(t *testing.T, target string, secure bool) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(answer http.ResponseWriter, q *http.Request) {
		if _, password, _ := q.BasicAuth(); password != "secret" {
			answer.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			answer.WriteHeader(http.StatusUnauthorized)
			return
		}
		http.Redirect(answer, q, target+q.URL.Path, http.StatusTemporaryRedirect)
	}))
	if secure {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return server
}

func TestCredentialsDoNotFollowARedirect(t *testing.T) {
	for name, c := range map[string]struct {
		from, to bool // by TLS
		fetch    func(t *testing.T, host string, a Access) error
	}{
		"index, another port":       {fetch: loadFromRepo("http://")},
		"index, another scheme":     {from: true, fetch: loadFromRepo("https://")},
		"index, another TLS server": {from: true, to: true, fetch: loadFromRepo("https://")},
		"archive, another port":     {fetch: loadArchive("http://")},
		"archive, another scheme":   {from: true, fetch: loadArchive("https://")},
		"registry, another port":    {fetch: loadFromRegistry},
		"registry, another scheme":  {from: true, fetch: loadFromRegistry},
		"login, another port":       {fetch: login},
		"login, another scheme":     {from: true, fetch: login},
	} {
		t.Run(name, func(t *testing.T) {
			w := &witness{}
			w.Server = httptest.NewUnstartedServer(w)
			if c.to {
				w.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
				w.StartTLS()
			} else {
				w.Start()
			}
			t.Cleanup(w.Close)
			from := redirectTo(t, w.URL, c.from)
			access := Access{Username: "me", Password: "secret", InsecureSkipTLS: c.from, PlainHTTP: !c.from}
			if c.from {
				access.CertFile, access.KeyFile = clientCertificate(t, from)
			}
			_, host, _ := strings.Cut(from.URL, "://")
			err := c.fetch(t, host, access)
			if err == nil {
				t.Error("it succeeded")
			}
			if w.asked == 0 || len(w.given) > 0 {
				t.Errorf("the other server was asked %d times and given %q", w.asked, w.given)
			}
			if (strings.HasPrefix(name, "index") || strings.HasPrefix(name, "archive")) &&
				(err == nil || !strings.Contains(err.Error(), "credentials are not sent on to another host, port or scheme")) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// Who shows a client certificate doesn't send a password without TLS, whatever the registry speaks.
func TestClientCertificateRequiresTLS(t *testing.T) {
	for name, fetch := range map[string]func(*testing.T, string, Access) error{"registry": loadFromRegistry, "login": login} {
		t.Run(name, func(t *testing.T) {
			w := &witness{}
			w.Server = httptest.NewServer(w)
			t.Cleanup(w.Close)
			other := httptest.NewTLSServer(w)
			t.Cleanup(other.Close)
			access := Access{Username: "me", Password: "secret"}
			access.CertFile, access.KeyFile = clientCertificate(t, other)
			if err := fetch(t, strings.TrimPrefix(w.URL, "http://"), access); err == nil {
				t.Error("it succeeded")
			}
			if w.asked > 0 {
				t.Errorf("the registry was asked %d times without TLS and given %q", w.asked, w.given)
			}
		})
	}
}

// clientCertificate writes the certificate of a server, to take as a client's.
func clientCertificate(t *testing.T, server *httptest.Server) (cert, key string) {
	t.Helper()
	pair := server.TLS.Certificates[0]
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	write(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})))
	write(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	return cert, key
}

func loadFromRepo(scheme string) func(*testing.T, string, Access) error {
	return func(t *testing.T, host string, a Access) error {
		_, err := Load(t.Context(), "web", LoadOptions{Settings: helmHome(t), Repo: scheme + host, Access: a})
		return err
	}
}

func loadArchive(scheme string) func(*testing.T, string, Access) error {
	return func(t *testing.T, host string, a Access) error {
		_, err := Load(t.Context(), scheme+host+"/web-1.0.0.tgz", LoadOptions{Settings: helmHome(t), Access: a})
		return err
	}
}

func loadFromRegistry(t *testing.T, host string, a Access) error {
	_, err := Load(t.Context(), "oci://"+host+"/charts/web:1.0.0", LoadOptions{Settings: helmHome(t), Access: a})
	return err
}

func login(t *testing.T, host string, a Access) error {
	return a.Login(helmHome(t), host, nil)
}

func TestCredentialsFollowARedirectWithinAServer(t *testing.T) {
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, q *http.Request) {
		_, password, _ := q.BasicAuth()
		seen = append(seen, q.URL.Path+" "+password)
		if q.URL.Path == "/index.yaml" {
			http.Redirect(answer, q, "/there/index.yaml", http.StatusFound)
			return
		}
		http.NotFound(answer, q)
	}))
	t.Cleanup(server.Close)
	_ = loadFromRepo("http://")(t, strings.TrimPrefix(server.URL, "http://"), Access{Username: "me", Password: "secret"})
	if want := []string{"/index.yaml secret", "/there/index.yaml secret"}; !slices.Equal(seen, want) {
		t.Errorf("got %q, want %q", seen, want)
	}
}

// TestCredentialsAreNotForAnyRealm: a registry may name a server that gives out tokens for it, but
// not one that is asked without TLS when the registry isn't, nor one inside of the user's network;
// and that server sends nobody's credentials on.
// https://distribution.github.io/distribution/spec/auth/token/
func TestCredentialsAreNotForAnyRealm(t *testing.T) {
	for name, secure := range map[string]bool{"without TLS": true, "on the machine itself": false} {
		for what, fetch := range map[string]func(*testing.T, string, Access) error{"pull": loadFromRegistry, "login": login} {
			w := &witness{}
			w.Server = httptest.NewServer(w)
			t.Cleanup(w.Close)
			realm := strings.Replace(w.URL, "127.0.0.1", "localhost", 1)
			if !secure {
				realm = w.URL
			}
			host := registryWithRealm(t, realm, secure)
			if !secure {
				host = strings.Replace(host, "127.0.0.1", "localhost", 1)
			}
			if err := fetch(t, host, Access{Username: "me", Password: "secret", InsecureSkipTLS: secure, PlainHTTP: !secure}); err == nil {
				t.Errorf("%s, %s: it succeeded", what, name)
			}
			if len(w.given) > 0 {
				t.Errorf("%s, %s: the realm was given %q", what, name, w.given)
			}
		}
	}
	w := &witness{}
	w.Server = httptest.NewServer(w)
	t.Cleanup(w.Close)
	between := redirectTo(t, w.URL, false)
	host := registryWithRealm(t, between.URL, false)
	if err := loadFromRegistry(t, host, Access{Username: "me", Password: "secret", PlainHTTP: true}); err == nil {
		t.Error("a realm that redirects: it succeeded")
	}
	if w.asked == 0 || len(w.given) > 0 {
		t.Errorf("a realm that redirects: the other server was asked %d times and given %q", w.asked, w.given)
	}
}

// registryWithRealm is a registry that wants a token of a realm; it returns its host.
func registryWithRealm(t *testing.T, realm string, secure bool) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(answer http.ResponseWriter, q *http.Request) {
		answer.Header().Set("WWW-Authenticate", `Bearer realm="`+realm+`/token",service="test"`)
		answer.WriteHeader(http.StatusUnauthorized)
	}))
	if secure {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	_, host, _ := strings.Cut(server.URL, "://")
	return host
}

// askingForCertificates is a witness by TLS that asks who connects for a certificate.
func askingForCertificates(t *testing.T) *witness {
	t.Helper()
	w := &witness{}
	w.Server = httptest.NewUnstartedServer(w)
	w.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	w.StartTLS()
	t.Cleanup(w.Close)
	return w
}

// TestClientCertificatesAreForTheRegistryOnly: the server that gives out tokens for a registry may be on another
// host, which the registry chooses.
func TestClientCertificatesAreForTheRegistryOnly(t *testing.T) {
	for what, fetch := range map[string]func(*testing.T, string, Access) error{"pull": loadFromRegistry, "login": login} {
		w := askingForCertificates(t)
		cert, key := clientCertificate(t, w.Server)
		host := registryWithRealm(t, w.URL, true)
		access := Access{Username: "me", Password: "secret", CertFile: cert, KeyFile: key, InsecureSkipTLS: true}
		if err := fetch(t, host, access); err == nil {
			t.Errorf("%s succeeded", what)
		}
		if w.asked == 0 || slices.ContainsFunc(w.given, func(s string) bool { return strings.Contains(s, "certificate") }) {
			t.Errorf("%s: the realm was asked %d times and given %q", what, w.asked, w.given)
		}
		w = askingForCertificates(t)
		_, host, _ = strings.Cut(w.URL, "://")
		if err := fetch(t, host, access); err == nil || len(w.given) == 0 {
			t.Errorf("%s: the registry itself was given %q, with error %v", what, w.given, err)
		}
	}
}

// TestIndexGivesNoCredentialsToARegistryElsewhere: an index may name a reference in a registry instead of
// an archive.
func TestIndexGivesNoCredentialsToARegistryElsewhere(t *testing.T) {
	for _, tag := range []string{"", ":1.0.0"} {
		w := &witness{}
		w.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(answer http.ResponseWriter, q *http.Request) {
			answer.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.ServeHTTP(answer, q)
		}))
		w.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
		w.StartTLS()
		t.Cleanup(w.Close)
		text := "apiVersion: v1\nentries:\n  web:\n  - {apiVersion: v2, name: web, version: 1.0.0, urls: ['" + strings.Replace(w.URL, "https", "oci", 1) + "/charts/web" + tag + "']}\n"
		index := httptest.NewTLSServer(http.HandlerFunc(func(answer http.ResponseWriter, q *http.Request) { answer.Write([]byte(text)) }))
		t.Cleanup(index.Close)

		settings := helmHome(t)
		access := Access{Username: "me", Password: "secret", InsecureSkipTLS: true}
		access.CertFile, access.KeyFile = clientCertificate(t, index)
		write(t, settings.RepositoryConfig, fmt.Sprintf("apiVersion: v1\nrepositories:\n- {name: r, url: %q, username: me, password: secret, certFile: %q, keyFile: %q, insecure_skip_tls_verify: true}\n",
			index.URL, access.CertFile, access.KeyFile))
		write(t, filepath.Join(settings.RepositoryCache, "r-index.yaml"), text)
		dir := t.TempDir()
		write(t, filepath.Join(dir, "Chart.yaml"), "apiVersion: v2\nname: c\nversion: 1.0.0\ndependencies: [{name: web, version: 1.0.0, repository: '@r'}]\n")

		fails := func(what string, err error) {
			t.Helper()
			w.lock.Lock()
			defer w.lock.Unlock()
			if err == nil || tag != "" && w.asked == 0 || len(w.given) > 0 {
				t.Errorf("%s%s: the registry was asked %d times and given %q, with error %v", what, tag, w.asked, w.given, err)
			}
			w.asked, w.given = 0, nil
		}
		_, err := Load(t.Context(), "web", LoadOptions{Settings: settings, Repo: index.URL, Access: access})
		fails("--repo", err)
		_, err = Load(t.Context(), "r/web", LoadOptions{Settings: settings, Access: Access{InsecureSkipTLS: true}})
		fails("a repository of the list", err)
		manager, err := dependencyManager(t.Context(), dir, DependencyOptions{LoadOptions: LoadOptions{Settings: settings, Access: access}})
		if err == nil {
			err = manager.Update()
		}
		fails("a dependency", err)
	}
}

// TestEndlessRedirectsEnd: a registry that has another page or another address for each request isn't followed without end.
func TestEndlessRedirectsEnd(t *testing.T) {
	var server *httptest.Server
	asked := 0
	server = httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, q *http.Request) {
		if asked++; strings.Contains(q.URL.Path, "/tags/list") { // the next page
			answer.Header().Set("Link", fmt.Sprintf(`<%s?last=%d>; rel="next"`, q.URL.Path, asked))
			answer.Header().Set("Content-Type", "application/json")
			fmt.Fprint(answer, `{"name":"c","tags":["1.0.0"]}`)
			return
		}
		http.Redirect(answer, q, fmt.Sprint(server.URL, "/again/", asked), http.StatusFound)
	}))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	for what, load := range map[string]func() error{
		"redirects": func() error { return loadFromRegistry(t, host, Access{PlainHTTP: true}) },
		"pages": func() error {
			_, err := Load(t.Context(), "oci://"+host+"/charts/web", LoadOptions{Settings: helmHome(t), Version: ">=1.0.0", Access: Access{PlainHTTP: true}})
			return err
		},
	} {
		asked = 0
		if err := load(); err == nil || asked > maxRequests {
			t.Errorf("%s: %d requests, then %v", what, asked, err)
		}
	}
}

// TestOnlyTheRegistryItselfFallsBackToPlainHTTP: a server that gives out tokens for it gets no password without TLS.
func TestOnlyTheRegistryItselfFallsBackToPlainHTTP(t *testing.T) {
	for what, fetch := range map[string]func(*testing.T, string, Access) error{"pull": loadFromRegistry, "login": login} {
		w := &witness{}
		w.Server = httptest.NewServer(w)
		t.Cleanup(w.Close)
		realm := strings.Replace(strings.Replace(w.URL, "http:", "https:", 1), "127.0.0.1", "localhost", 1)
		host := registryWithRealm(t, realm, false)
		err := fetch(t, host, Access{Username: "me", Password: "secret"})
		if err == nil || w.asked > 0 {
			t.Errorf("%s: the realm was asked %d times and given %q, with error %v", what, w.asked, w.given, err)
		}
	}
}

// TestClientCertificatesAreForAnOrigin, however its port is written.
func TestClientCertificatesAreForAnOrigin(t *testing.T) {
	for _, c := range []struct {
		server, url string
		want        bool
	}{
		{"https://charts.example.com:443/stable", "https://Charts.example.com/web.tgz", true},
		{"https://charts.example.com", "https://charts.example.com:443/web.tgz", true},
		{"https://charts.example.com", "https://charts.example.com:8443/web.tgz", false},
		{"https://charts.example.com", "http://charts.example.com/web.tgz", false},
		{"oci://charts.example.com/stable", "https://charts.example.com/v2/", true},
		{"charts.example.com:5000", "https://charts.example.com:5000/v2/", true},
		{"charts.example.com:5000", "https://charts.example.com/v2/", false},
	} {
		var sent Access
		guard, err := Access{CertFile: "cert", KeyFile: "key"}.guarded([]string{c.server}, func(a Access) (http.RoundTripper, error) {
			return roundTrip(func(q *http.Request) (*http.Response, error) {
				sent = a
				return &http.Response{Request: q, Body: http.NoBody}, nil
			}), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := guard.RoundTrip(httptest.NewRequest(http.MethodGet, c.url, nil)); err != nil || (sent.CertFile != "") != c.want {
			t.Errorf("%s asked for %s: certificate %q, %v", c.server, c.url, sent.CertFile, err)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }
