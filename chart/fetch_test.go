package chart

import (
	"bytes"
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
