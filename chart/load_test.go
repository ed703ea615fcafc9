package chart

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/provenance"

	"deployer/internal/program"
)

// pack makes an archive of the web test chart in dir, with another version.
func pack(t *testing.T, dir, version string) string {
	t.Helper()
	c, err := loader.Load(filepath.Join(testcharts, "web"))
	if err != nil {
		t.Fatal(err)
	}
	c.Metadata.Version = version
	path, err := chartutil.Save(c, dir)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// helmHome keeps Helm's files of this test to itself.
func helmHome(t *testing.T) Settings {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HELM_CACHE_HOME", filepath.Join(home, "cache"))
	t.Setenv("HELM_PLUGINS", filepath.Join(home, "plugins"))
	return Settings{
		RegistryConfig:   filepath.Join(home, "registry.json"),
		RepositoryConfig: filepath.Join(home, "repositories.yaml"),
		RepositoryCache:  filepath.Join(home, "cache", "repository"),
	}
}

// repository serves packed versions of the web chart behind a password.
func repository(t *testing.T, versions ...string) *httptest.Server {
	t.Helper()
	dir := t.TempDir()
	index := "apiVersion: v1\nentries:\n  web:\n"
	for _, v := range versions {
		name := filepath.Base(pack(t, dir, v))
		index += fmt.Sprintf("  - {apiVersion: v2, name: web, version: %s, urls: [charts/%s]}\n", v, name)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "secret" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		if r.URL.Path == "/index.yaml" {
			w.Write([]byte(index))
			return
		}
		http.ServeFile(w, r, filepath.Join(dir, filepath.Base(r.URL.Path)))
	}))
	t.Cleanup(server.Close)
	return server
}

func TestLoadDirectoryAndArchive(t *testing.T) {
	ctx := context.Background()
	for _, ref := range []string{filepath.Join(testcharts, "web"), " " + pack(t, t.TempDir(), "1.0.0")} {
		c, err := Load(ctx, ref, LoadOptions{Repo: "http://unasked.invalid"})
		if err != nil {
			t.Fatalf("Load(%s): %v", ref, err)
		}
		if c.Name() != "web-1.0.0" || len(c.Helm.Templates) != 5 {
			t.Errorf("Load(%s) is %s with %d templates", ref, c.Name(), len(c.Helm.Templates))
		}
		if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "unasked.invalid was not asked") {
			t.Errorf("Load(%s) warns %q", ref, c.Warnings)
		}
	}
}

func TestLoadFromRepositoryByURL(t *testing.T) {
	server := repository(t, "1.0.0", "1.2.0", "2.0.0-rc.1")
	access := Access{Username: "me", Password: "secret"}
	for name, c := range map[string]struct {
		opts LoadOptions
		want string
	}{
		"newest":      {LoadOptions{Access: access}, "web-1.2.0"},
		"exact":       {LoadOptions{Access: access, Version: "1.0.0"}, "web-1.0.0"},
		"constraint":  {LoadOptions{Access: access, Version: "<1.2"}, "web-1.0.0"},
		"devel":       {LoadOptions{Access: access, Devel: true}, "web-2.0.0-rc.1"},
		"both":        {LoadOptions{Access: access, Devel: true, Version: "^1.0.0"}, "web-1.2.0"},
		"absent":      {LoadOptions{Access: access, Version: "9.9.9"}, `fetching chart web: chart "web" version "9.9.9" not found`},
		"no password": {LoadOptions{}, "401"},
	} {
		t.Run(name, func(t *testing.T) {
			c.opts.Repo, c.opts.Settings = server.URL, helmHome(t)
			got, err := Load(context.Background(), "web", c.opts)
			if err != nil {
				if !strings.Contains(err.Error(), c.want) {
					t.Errorf("error is %v, want %s", err, c.want)
				}
				return
			}
			if got.Name() != c.want {
				t.Errorf("got %s, want %s", got.Name(), c.want)
			}
		})
	}
}

func TestLoadFromRepositoryByNameAndByURLOfTheArchive(t *testing.T) {
	server := repository(t, "1.0.0", "1.2.0")
	settings := helmHome(t)
	write(t, settings.RepositoryConfig, fmt.Sprintf("apiVersion: \"\"\nrepositories:\n- {name: my, url: %s, username: me, password: secret}\n", server.URL))
	opts := LoadOptions{Settings: settings}
	_, err := Load(context.Background(), "my/web", opts)
	var remote *RemoteError
	if !errors.As(err, &remote) || remote.Hint() != "update the indexes of the repositories: "+program.Name+" repo update" {
		t.Errorf("without an index: %v", err)
	}
	write(t, filepath.Join(settings.RepositoryCache, "my-index.yaml"),
		"apiVersion: v1\nentries:\n  web:\n  - {apiVersion: v2, name: web, version: 1.2.0, urls: [charts/web-1.2.0.tgz]}\n")
	for _, ref := range []string{"my/web", server.URL + "/charts/web-1.2.0.tgz"} {
		opts.Access = Access{}
		if ref != "my/web" {
			opts.Access = Access{Username: "me", Password: "secret"}
		}
		if c, err := Load(context.Background(), ref, opts); err != nil || c.Name() != "web-1.2.0" {
			t.Errorf("Load(%s): %v", ref, err)
		}
	}
	left, err := filepath.Glob(filepath.Join(settings.RepositoryCache, "*.tgz"))
	if err != nil || len(left) > 0 {
		t.Errorf("left in the cache: %v, %v", left, err)
	}
}

// silentServer gives the URL of a server that never answers, and a context that
// ends when it is asked.
func silentServer(t *testing.T) (string, context.Context) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		cancel()
		<-release
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	return server.URL, ctx
}

func TestLoadEndsWithItsContext(t *testing.T) {
	url, ctx := silentServer(t)
	_, err := Load(ctx, "web", LoadOptions{Repo: url, Settings: helmHome(t)})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "plain.yaml"), "a: 1\n")
	lacking := chartDir(t, map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: probe\nversion: 1.0.0\ndependencies:\n- {name: one, version: 1.x}\n- {name: two, version: 1.x}\n"})
	unquoted := chartDir(t, map[string]string{"Chart.yaml": "apiVersion: v2\nname: probe\nversion: 1.0.0\n", "values.yaml": "password: *hunter2\n"})
	for name, c := range map[string]struct{ ref, want, hint string }{
		"unquoted password":    {unquoted, "cannot load values.yaml: error converting YAML to JSON: yaml: unknown anchor (hidden) referenced", ""},
		"nothing":              {"", "no chart was named", "name a chart directory"},
		"no such path":         {"./none", `there is no chart: path "./none" not found`, "name a chart directory"},
		"directory, no chart":  {dir, "Chart.yaml file is missing", "name a chart directory"},
		"a values file":        {filepath.Join(dir, "plain.yaml"), "seems to be a YAML file", ""},
		"library":              {filepath.Join(testcharts, "library", "charts", "parts"), "library charts are not installable: parts", "application chart"},
		"missing dependencies": {lacking, "chart probe lacks dependencies: found in Chart.yaml, but missing in charts/ directory: one, two", program.Name + " dependency build " + lacking},
		"bare name":            {"nosuchchart", "fetching chart nosuchchart", "for a local chart write ./nosuchchart"},
		"unknown repository":   {"none/web", "repo none not found", program.Name + " repo add none URL"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(context.Background(), c.ref, LoadOptions{Settings: helmHome(t)})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Load(%q): %v, want %s", c.ref, err, c.want)
			}
			var hinted interface{ Hint() string }
			if c.hint != "" && (!errors.As(err, &hinted) || !strings.Contains(hinted.Hint(), c.hint)) {
				t.Errorf("Load(%q) has no hint %q: %v", c.ref, c.hint, err)
			}
		})
	}
}

func TestLoadForInspection(t *testing.T) {
	for _, ref := range []string{
		filepath.Join(testcharts, "library", "charts", "parts"),
		chartDir(t, map[string]string{"Chart.yaml": "apiVersion: v2\nname: probe\nversion: 1.0.0\ndependencies:\n- {name: one, version: 1.x}\n"}),
	} {
		if _, err := Load(context.Background(), ref, LoadOptions{}); err == nil {
			t.Errorf("Load(%s) takes a chart that can't be deployed", ref)
		}
		if _, err := Load(context.Background(), ref, LoadOptions{ForInspection: true}); err != nil {
			t.Errorf("Load(%s) for inspection: %v", ref, err)
		}
	}
}

func TestLoadWarns(t *testing.T) {
	c, err := Load(context.Background(), chartDir(t, map[string]string{
		"Chart.yaml":            "apiVersion: v2\nname: probe\nversion: 1.0.0\ndeprecated: true\ndependencies:\n- {name: one, version: 2.x}\n",
		"charts/one/Chart.yaml": "apiVersion: v2\nname: one\nversion: 1.0.0\n",
	}), LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := "chart probe is deprecated; chart probe wants one 2.x, but charts/ has 1.0.0: its condition, tags and alias have no effect"
	if got := strings.Join(c.Warnings, "; "); got != want {
		t.Errorf("warnings are %s\nwant %s", got, want)
	}
}

func TestLoadUpdatesDependencies(t *testing.T) {
	parent := chartDir(t, map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: probe\nversion: 1.0.0\ndependencies:\n- {name: web, version: 1.x.x, repository: 'file://../web'}\n"})
	if err := os.CopyFS(filepath.Join(filepath.Dir(parent), "web"), os.DirFS(filepath.Join(testcharts, "web"))); err != nil {
		t.Fatal(err)
	}
	var said []string
	c, err := Load(context.Background(), parent, LoadOptions{UpdateDependencies: true, Settings: helmHome(t),
		Progress: func(line string) { said = append(said, line) }})
	if err != nil || len(c.Helm.Dependencies()) != 1 {
		t.Fatalf("got %v, %v", c, err)
	}
	if _, err := os.Stat(filepath.Join(parent, "Chart.lock")); err != nil {
		t.Error(err)
	}
	if !strings.Contains(strings.Join(said, "\n"), "Saving 1 charts") {
		t.Errorf("told %q", said)
	}
}

// sign returns the signature of an archive, and the file of a keyring for it.
func sign(t *testing.T, archive string) (signature, keyring string) {
	t.Helper()
	entity, err := openpgp.NewEntity("Tester", "", "tester@example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	signature, err = (&provenance.Signatory{Entity: entity}).ClearSign(archive)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "pubring.gpg"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(entity.Serialize(file), file.Close()); err != nil {
		t.Fatal(err)
	}
	return signature, file.Name()
}

func TestLoadVerifies(t *testing.T) {
	archive := pack(t, t.TempDir(), "1.0.0")
	signature, keyring := sign(t, archive)
	opts := LoadOptions{Verify: true, Keyring: keyring}
	if _, err := Load(context.Background(), archive, opts); err == nil {
		t.Error("an archive without signature is verified")
	}
	write(t, archive+".prov", signature)
	if _, err := Load(context.Background(), archive, opts); err != nil {
		t.Errorf("the signed archive: %v", err)
	}
	other := pack(t, t.TempDir(), "1.0.1")
	if err := os.Rename(other, archive); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(context.Background(), archive, opts); err == nil || !strings.Contains(err.Error(), "verifying chart") {
		t.Errorf("an archive changed after signing: %v", err)
	}
}
