package chart

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A served repository: web 1.0.0 with whatever its index says of it.
type served struct {
	name, version, digest string // in the index
	*httptest.Server
}

func serveOne(t *testing.T) *served {
	t.Helper()
	archive, err := os.ReadFile(pack(t, t.TempDir(), "1.0.0"))
	if err != nil {
		t.Fatal(err)
	}
	s := &served{name: "web", version: "1.0.0", digest: fmt.Sprintf("%x", sha256.Sum256(archive))}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch q.URL.Path {
		case "/index.yaml":
			fmt.Fprint(w, s.index())
		case "/archives/file.tgz":
			w.Write(archive)
		default:
			http.NotFound(w, q)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *served) index() string {
	return fmt.Sprintf("apiVersion: v1\nentries:\n  %s:\n  - {apiVersion: v2, name: web, version: %s, digest: %q, urls: [archives/file.tgz]}\n", s.name, s.version, s.digest)
}

// listed makes the repository known as "my", with its index in the cache.
func (s *served) listed(t *testing.T) Settings {
	t.Helper()
	settings := helmHome(t)
	write(t, settings.RepositoryConfig, fmt.Sprintf("apiVersion: v1\nrepositories:\n- {name: my, url: %s}\n", s.URL))
	write(t, filepath.Join(settings.RepositoryCache, "my-index.yaml"), s.index())
	return settings
}

// mismatches are indexes that don't fit their archive, by the field in which they don't.
var mismatches = map[string]func(*served){
	"digest":  func(s *served) { s.digest = strings.Repeat("0", 64) },
	"name":    func(s *served) { s.name = "other" },
	"version": func(s *served) { s.version = "1.0.1" },
}

func TestAnArchiveThatItsIndexDoesNotDescribeIsRefused(t *testing.T) {
	for field, spoil := range mismatches {
		for _, way := range []string{"--repo", "repo/name", "URL"} {
			t.Run(field+" by "+way, func(t *testing.T) {
				s := serveOne(t)
				spoil(s)
				opts, ref := LoadOptions{Settings: s.listed(t)}, "my/"+s.name
				switch way {
				case "--repo":
					opts, ref = LoadOptions{Settings: helmHome(t), Repo: s.URL}, s.name
				case "URL":
					ref = s.URL + "/archives/file.tgz"
				}
				_, err := Load(t.Context(), ref, opts)
				var mismatch *ArchiveMismatchError
				if !errors.As(err, &mismatch) || mismatch.Field != field {
					t.Fatalf("Load(%s): %v, want a mismatch of the %s", ref, err, field)
				}
				var warnings []string
				opts.AllowMismatch, opts.Progress = true, func(line string) { warnings = append(warnings, line) }
				c, err := Load(t.Context(), ref, opts)
				if err != nil || c.Name() != "web-1.0.0" {
					t.Fatalf("where it is allowed: %v", err)
				}
				if !strings.Contains(strings.Join(warnings, "\n"), "WARNING: "+mismatch.Error()) {
					t.Errorf("where it is allowed, warnings %q", warnings)
				}
			})
		}
	}
}

func TestAnArchiveThatFitsIsTaken(t *testing.T) {
	for name, change := range map[string]func(*served){
		"as it is":             func(*served) {},
		"no digest":            func(s *served) { s.digest = "" },
		"digest with its kind": func(s *served) { s.digest = "sha256:" + strings.ToUpper(s.digest) },
		"v before the version": func(s *served) { s.version = "v1.0.0" },
	} {
		s := serveOne(t)
		change(s)
		if c, err := Load(t.Context(), "my/web", LoadOptions{Settings: s.listed(t)}); err != nil || c.Name() != "web-1.0.0" {
			t.Errorf("%s: %v", name, err)
		}
		if c, err := Load(t.Context(), "web", LoadOptions{Settings: helmHome(t), Repo: s.URL}); err != nil || c.Name() != "web-1.0.0" {
			t.Errorf("%s, by --repo: %v", name, err)
		}
	}
}

func TestAnArchiveOfAnotherVersionThanAskedForIsRefused(t *testing.T) {
	s := serveOne(t)
	url := s.URL + "/archives/file.tgz"
	for known, settings := range map[string]Settings{"in no index": helmHome(t), "in an index": s.listed(t)} {
		_, err := Load(t.Context(), url, LoadOptions{Settings: settings, Version: "^2.0.0"})
		if m := new(ArchiveMismatchError); !errors.As(err, &m) || m.Field != "version" || m.Want != "^2.0.0" {
			t.Errorf("%s: got %v", known, err)
		}
		if _, err := Load(t.Context(), url, LoadOptions{Settings: settings, Version: "^1.0.0"}); err != nil {
			t.Errorf("%s, of a version that fits: %v", known, err)
		}
	}
}

func TestDependenciesThatTheirIndexDoesNotDescribeAreRefused(t *testing.T) {
	for field, spoil := range mismatches {
		for _, known := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, repository known %t", field, known), func(t *testing.T) {
				s := serveOne(t)
				spoil(s)
				settings := helmHome(t)
				if known {
					settings = s.listed(t)
				}
				dir := chartDir(t, map[string]string{"Chart.yaml": fmt.Sprintf(
					"apiVersion: v2\nname: parent\nversion: 1.0.0\ndependencies:\n- {name: %s, version: 1.x, repository: %s}\n", s.name, s.URL)})
				var out bytes.Buffer
				update := func(allow bool) error {
					m, err := dependencyManager(t.Context(), dir, DependencyOptions{LoadOptions: LoadOptions{Settings: settings, AllowMismatch: allow}, Out: &out})
					if err != nil {
						t.Fatal(err)
					}
					return m.Update()
				}
				err := update(false)
				if m := new(ArchiveMismatchError); !errors.As(err, &m) || m.Field != field {
					t.Fatalf("got %v, want a mismatch of the %s", err, field)
				}
				if left, _ := filepath.Glob(filepath.Join(dir, "charts", "*")); len(left) > 0 {
					t.Errorf("charts/ has %v", left)
				}
				if err := update(true); err != nil || !strings.Contains(out.String(), "WARNING: ") {
					t.Errorf("where it is allowed: %v, warnings %s", err, &out)
				}
			})
		}
	}
}

func TestAChartOfAnotherNameThanItsReferenceIsRefused(t *testing.T) {
	host, _ := registryServer(t)
	// charts/shop has what charts/web has.
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, "http://"+host+strings.Replace(q.URL.Path, "/charts/shop/", "/charts/web/", 1), http.StatusTemporaryRedirect)
	}))
	t.Cleanup(proxy.Close)
	ref := "oci://" + strings.TrimPrefix(proxy.URL, "http://") + "/charts/shop:1.0.0"
	opts := LoadOptions{Settings: helmHome(t), Access: Access{PlainHTTP: true}}
	_, err := Load(t.Context(), ref, opts)
	if m := new(ArchiveMismatchError); !errors.As(err, &m) || m.Field != "name" || m.Want != "shop" {
		t.Errorf("got %v", err)
	}
	opts.AllowMismatch = true
	if c, err := Load(t.Context(), ref, opts); err != nil || c.Name() != "web-1.0.0" {
		t.Errorf("where it is allowed: %v", err)
	}
}

func TestIndexesAndArchivesAreLimited(t *testing.T) {
	for name, announced := range map[string]bool{"announced": true, "not announced": false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if announced {
				w.Header().Set("Content-Length", fmt.Sprint(int64(maxAnswer)+1))
			}
			line := bytes.Repeat([]byte("# nothing of interest\n"), 1<<12)
			for sent := 0; sent <= maxAnswer; sent += len(line) {
				if _, err := w.Write(line); err != nil {
					return
				}
			}
		}))
		_, err := Load(t.Context(), "web", LoadOptions{Settings: helmHome(t), Repo: server.URL})
		if err == nil || !strings.Contains(err.Error(), "index.yaml sends more than 64 MiB") {
			t.Errorf("an index, %s: %v", name, err)
		}
		_, err = Load(t.Context(), server.URL+"/web-1.0.0.tgz", LoadOptions{Settings: helmHome(t)})
		if err == nil || !strings.Contains(err.Error(), "web-1.0.0.tgz sends more than 128 MiB") {
			t.Errorf("an archive, %s: %v", name, err)
		}
		server.Close()
	}
}

// serveFiles serves files by TLS, and writes the certificate of the server.
func serveFiles(t *testing.T, files map[string][]byte) (server *httptest.Server, caFile string) {
	t.Helper()
	server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if data, ok := files[q.URL.Path]; ok {
			w.Write(data)
			return
		}
		http.NotFound(w, q)
	}))
	t.Cleanup(server.Close)
	caFile, _ = clientCertificate(t, server)
	return server, caFile
}

// TestSignaturesAreFetchedAsTheirArchives, from a server with a certificate of one's own.
func TestSignaturesAreFetchedAsTheirArchives(t *testing.T) {
	file := pack(t, t.TempDir(), "1.0.0")
	signature, keyring := sign(t, file)
	archive, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	server, ca := serveFiles(t, files)
	for _, inIndex := range []string{"web-1.0.0.tgz", server.URL + "/web-1.0.0.tgz"} {
		index := "apiVersion: v1\nentries: {web: [{apiVersion: v2, name: web, version: 1.0.0, urls: ['" + inIndex + "']}]}\n"
		files["/index.yaml"], files["/web-1.0.0.tgz"] = []byte(index), archive
		for _, from := range []string{server.URL, "'@my'"} {
			for what, signature := range map[string]string{"good": signature, "bad": strings.Replace(signature, "sha256:", "sha256:0", 1)} {
				files["/web-1.0.0.tgz.prov"] = []byte(signature)
				settings := helmHome(t)
				write(t, settings.RepositoryConfig, fmt.Sprintf("apiVersion: v1\nrepositories:\n- {name: my, url: %s, caFile: %s}\n", server.URL, ca))
				dir := chartDir(t, map[string]string{"Chart.yaml": "apiVersion: v2\nname: parent\nversion: 1.0.0\ndependencies:\n- {name: web, version: 1.x, repository: " + from + "}\n"})
				var out bytes.Buffer
				opts := DependencyOptions{LoadOptions: LoadOptions{Settings: settings, Verify: true, Keyring: keyring}, Out: &out}
				for command, run := range map[string]func(context.Context, string, DependencyOptions) error{"update": UpdateDependencies, "build": BuildDependencies} {
					if err := run(t.Context(), dir, opts); (err == nil) != (what == "good") {
						t.Errorf("%s from %s, a %s signature: %v\n%s", command, from, what, err, &out)
					}
				}
				if strings.Contains(out.String(), "Verification not found") {
					t.Errorf("from %s, a %s signature: %s", from, what, &out)
				}
			}
		}
	}
}

// TestDependenciesAreFetchedByTheRepositoryThatTheyName: an index of another one may list what it likes.
func TestDependenciesAreFetchedByTheRepositoryThatTheyName(t *testing.T) {
	archive, err := os.ReadFile(pack(t, t.TempDir(), "1.0.0"))
	if err != nil {
		t.Fatal(err)
	}
	server, ca := serveFiles(t, map[string][]byte{"/web-1.0.0.tgz": archive})
	right, wrong := fmt.Sprintf("%x", sha256.Sum256(archive)), strings.Repeat("0", 64)
	for _, c := range []struct {
		name, other, named string // settings of the entries
		path               string // of the other one's URL; empty is another server
		digest             string // in the index of the named one
		want               string // error
	}{
		{name: "as it says", named: "caFile: " + ca, digest: right},
		{name: "insecure another", other: "insecure_skip_tls_verify: true", digest: right, want: "x509"},
		{name: "insecure another on the same server", other: "insecure_skip_tls_verify: true", path: "/other", digest: right, want: "x509"},
		{name: "another with the CA", other: "caFile: " + ca, digest: right, want: "x509"},
		{name: "another with the digest", named: "caFile: " + ca, digest: wrong, want: "digest"},
	} {
		for from, files := range map[string]map[string]string{
			"a URL":  {"Chart.yaml": "apiVersion: v2\nname: parent\nversion: 1.0.0\ndependencies:\n- {name: web, version: 1.x, repository: " + server.URL + "}\n"},
			"a name": {"Chart.yaml": "apiVersion: v2\nname: parent\nversion: 1.0.0\ndependencies:\n- {name: web, version: 1.x, repository: '@named'}\n"},
			"requirements.yaml": {"Chart.yaml": "apiVersion: v1\nname: parent\nversion: 1.0.0\n",
				"requirements.yaml": "dependencies:\n- {name: web, version: 1.x, repository: " + server.URL + "/}\n"},
		} {
			settings, otherURL := helmHome(t), "https://other.example.com"
			if c.path != "" {
				otherURL = server.URL + c.path
			}
			write(t, settings.RepositoryConfig, fmt.Sprintf("apiVersion: v1\nrepositories:\n- {name: other, url: %q, %s}\n- {name: named, url: %q, %s}\n", otherURL, c.other, server.URL, c.named))
			for name, digest := range map[string]string{"other": right, "named": c.digest} {
				write(t, filepath.Join(settings.RepositoryCache, name+"-index.yaml"), fmt.Sprintf(
					"apiVersion: v1\nentries: {web: [{apiVersion: v2, name: web, version: 1.0.0, digest: %q, urls: ['%s/web-1.0.0.tgz']}]}\n", digest, server.URL))
			}
			err := UpdateDependencies(t.Context(), chartDir(t, files), DependencyOptions{LoadOptions: LoadOptions{Settings: settings}, SkipRefresh: true})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s, from %s: %v, want %q", c.name, from, err, c.want)
			}
		}
	}
}

// TestAURLIsFetchedByTheRepositoryOnItsServer: other repositories that list it say nothing of how to reach it.
func TestAURLIsFetchedByTheRepositoryOnItsServer(t *testing.T) {
	archive, err := os.ReadFile(pack(t, t.TempDir(), "1.0.0"))
	if err != nil {
		t.Fatal(err)
	}
	server, ca := serveFiles(t, map[string][]byte{"/web-1.0.0.tgz": archive})
	for url, isOwn := range map[string]bool{server.URL + "/charts": true, "https://other.example.com": false} {
		settings := helmHome(t)
		write(t, settings.RepositoryConfig, fmt.Sprintf("apiVersion: v1\nrepositories:\n- {name: r, url: %q, caFile: %q}\n", url, ca))
		write(t, filepath.Join(settings.RepositoryCache, "r-index.yaml"),
			"apiVersion: v1\nentries: {web: [{apiVersion: v2, name: web, version: 1.0.0, urls: ['"+server.URL+"/web-1.0.0.tgz']}]}\n")
		if _, err := Load(t.Context(), server.URL+"/web-1.0.0.tgz", LoadOptions{Settings: settings}); (err == nil) != isOwn {
			t.Errorf("with the CA of %s: %v", url, err)
		}
	}
}
