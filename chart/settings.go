package chart

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/cli"
	"helm.sh/helm/v3/pkg/getter"
	"helm.sh/helm/v3/pkg/registry"
)

// Settings say where Helm's own files are. Empty fields take Helm's
// environment variables (HELM_REGISTRY_CONFIG, HELM_REPOSITORY_CONFIG,
// HELM_REPOSITORY_CACHE, HELM_PLUGINS) and then Helm's default paths.
type Settings struct {
	RegistryConfig   string // registry credentials, config.json
	RepositoryConfig string // repositories.yaml
	RepositoryCache  string // directory of repository indexes
	Debug            bool   // let the registry client say more

	TransferStats *TransferStats // counts transferred bytes; may be nil
}

// EnvSettings returns the settings for Helm's libraries. Empty fields have the values of Helm's
// environment variables and default paths.
func (s Settings) EnvSettings() *cli.EnvSettings {
	env := cli.New()
	env.RegistryConfig = cmp.Or(s.RegistryConfig, env.RegistryConfig)
	env.RepositoryConfig = cmp.Or(s.RepositoryConfig, env.RepositoryConfig)
	env.RepositoryCache = cmp.Or(s.RepositoryCache, env.RepositoryCache)
	env.Debug = env.Debug || s.Debug
	return env
}

// Access is how to reach a chart repository or registry.
type Access struct {
	Username, Password string
	PassCredentials    bool   // give the credentials to every host the chart is fetched from
	CertFile, KeyFile  string // client certificate and key, PEM
	CAFile             string // certificates that sign the server's, PEM
	InsecureSkipTLS    bool   // don't check the server's certificate
	PlainHTTP          bool   // talk HTTP to a registry
}

// getterOptions are the access for Helm's getters.
func (a Access) getterOptions() []getter.Option {
	return []getter.Option{
		getter.WithPassCredentialsAll(a.PassCredentials),
		getter.WithTLSClientConfig(a.CertFile, a.KeyFile, a.CAFile),
		getter.WithInsecureSkipVerifyTLS(a.InsecureSkipTLS),
		getter.WithPlainHTTP(a.PlainHTTP),
		getter.WithBasicAuth(a.Username, a.Password),
	}
}

// RegistryClient returns Helm's registry client, with the credentials file of s. Its messages, such
// as the digest of a pulled chart, are written to progress; nil drops them. The client certificate of a is
// shown only to the hosts of refs, such as oci://registry.example.com/charts/web, and not to servers
// that give out tokens for them.
func (a Access) RegistryClient(s Settings, progress io.Writer, refs ...string) (*registry.Client, error) {
	client, _, err := a.newRegistryClient(s, progress, refs)
	return client, err
}

// newRegistryClient is RegistryClient that also returns the fallback, which knows whether the registry speaks HTTP.
func (a Access) newRegistryClient(s Settings, progress io.Writer, refs []string) (*registry.Client, *plainHTTPFallback, error) {
	env := s.EnvSettings()
	guard, err := a.guarded(refs, func(a Access) (http.RoundTripper, error) { return a.registryTransport(env.Debug) })
	if err != nil {
		return nil, nil, err
	}
	fallback := &plainHTTPFallback{RoundTripper: guard.sameOrigin}
	if !a.hasTLSSettings() {
		guard.sameOrigin = fallback
	}
	if a.Username != "" && a.Password != "" {
		env.RegistryConfig = os.DevNull // Helm's client would read the file all the same
	}
	said := cmp.Or[io.Writer](progress, io.Discard)
	transport := &tagReader{RoundTripper: s.TransferStats.count(guard), warn: said, tags: map[string][]string{}}
	options := []registry.ClientOption{
		registry.ClientOptDebug(env.Debug),
		registry.ClientOptEnableCache(true),
		registry.ClientOptWriter(said),
		registry.ClientOptCredentialsFile(env.RegistryConfig),
		registry.ClientOptBasicAuth(a.Username, a.Password),
		registry.ClientOptHTTPClient(&http.Client{Transport: transport}),
	}
	if a.PlainHTTP {
		options = append(options, registry.ClientOptPlainHTTP())
	}
	client, err := registry.NewClient(options...)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the registry credentials in %s: %w", env.RegistryConfig, err)
	}
	return client, fallback, nil
}

// Getters returns Helm's getters, which download from URLs. Those for http and https have the TLS settings of a; its client
// certificate is shown only to server, a URL. Helm's own send credentials on to servers to which they are redirected, and
// read answers of any size.
func (s Settings) Getters(a Access, server string, options ...getter.Option) getter.Providers {
	providers := getter.All(s.EnvSettings(), options...)
	i := slices.IndexFunc(providers, func(p getter.Provider) bool { return p.Provides("https") })
	helms := providers[i].New
	providers[i].New = func(more ...getter.Option) (getter.Getter, error) {
		own, err := s.httpOptions(a, []string{server})
		if err != nil {
			return nil, err
		}
		return helms(append(more, own...)...)
	}
	return providers
}

// httpOptions make Helm's getter ask by a transport of our own. The option takes only one of Go's type, so ours is registered in it.
func (s Settings) httpOptions(a Access, servers []string) ([]getter.Option, error) {
	guard, err := a.guarded(servers, Access.httpTransport)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}} // or HTTP/2 would be registered too
	for _, scheme := range []string{"http", "https"} {
		transport.RegisterProtocol(scheme, s.TransferStats.count(guard))
	}
	return []getter.Option{getter.WithTransport(transport)}, nil
}

// httpTransport is one as Helm's HTTP getter makes it.
func (a Access) httpTransport() (http.RoundTripper, error) {
	transport := &http.Transport{DisableCompression: true, Proxy: http.ProxyFromEnvironment}
	if !a.hasTLSSettings() {
		return transport, nil
	}
	config, err := a.tlsConfig()
	transport.TLSClientConfig = config
	return transport, err
}

// Login checks the credentials against a registry and stores them where s says. Messages of
// the client are written to progress; nil drops them.
func (a Access) Login(s Settings, host string, progress io.Writer) error {
	// A client that is made with credentials doesn't look into the store.
	without := a
	without.Username, without.Password = "", ""
	client, fallback, err := without.newRegistryClient(s, progress, []string{host})
	if err != nil {
		return err
	}
	login := func(plain bool) error {
		return client.Login(host, registry.LoginOptBasicAuth(a.Username, a.Password), registry.LoginOptPlainText(plain))
	}
	err = login(a.PlainHTTP)
	if err != nil && !a.PlainHTTP && fallback.plain.Load() {
		return login(true) // credentials don't follow a change of scheme; Helm's client asks anew as well
	}
	return err
}

// registryTransport is that of a registry client, such as Helm makes it.
func (a Access) registryTransport(debug bool) (http.RoundTripper, error) {
	if !a.hasTLSSettings() {
		return registry.NewTransport(debug), nil
	}
	config, err := a.tlsConfig()
	if err != nil {
		return nil, err
	}
	return &http.Transport{TLSClientConfig: config, Proxy: http.ProxyFromEnvironment}, nil
}

func (a Access) hasTLSSettings() bool {
	return a.CertFile != "" && a.KeyFile != "" || a.CAFile != "" || a.InsecureSkipTLS
}

// Check reads the files with certificates, as Helm does also where nothing is fetched.
func (a Access) Check() error {
	_, err := a.tlsConfig()
	return err
}

func (a Access) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{InsecureSkipVerify: a.InsecureSkipTLS}
	if a.CertFile != "" && a.KeyFile != "" {
		pair, err := tls.LoadX509KeyPair(a.CertFile, a.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate %s and its key %s: %w", a.CertFile, a.KeyFile, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if a.CAFile == "" {
		return config, nil
	}
	pem, err := os.ReadFile(a.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the CA certificates: %w", err)
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("reading the CA certificates: %s has no PEM certificate", a.CAFile)
	}
	return config, nil
}

// A lineWriter is a writer that calls a function for each line; nil drops them.
type lineWriter func(string)

func (w lineWriter) Write(p []byte) (int, error) {
	if w == nil {
		return len(p), nil
	}
	for line := range strings.Lines(string(p)) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			w(line)
		}
	}
	return len(p), nil
}
