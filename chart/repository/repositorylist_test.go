package repository

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"deployer/chart"
)

const index = `apiVersion: v1
entries:
  web:
  - {apiVersion: v2, name: web, version: 0.9.0, appVersion: "8", description: a web server, urls: [web-0.9.0.tgz], created: "2026-01-02T00:00:00Z"}
  - {apiVersion: v2, name: web, version: 1.1.0-rc.1, urls: [web-1.1.0-rc.1.tgz], created: "2026-03-02T00:00:00Z"}
  - {apiVersion: v2, name: web, version: 1.0.0, deprecated: true, urls: [web-1.0.0.tgz], created: "2026-02-02T00:00:00Z"}
  db:
  - {apiVersion: v2, name: db, version: 2.0.0, description: a database, urls: [db-2.0.0.tgz]}
`

// A shelf is a repository whose server can break.
func shelf(t *testing.T) (url string, broken *atomic.Bool) {
	t.Helper()
	broken = new(atomic.Bool)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if broken.Load() || r.URL.Path != "/index.yaml" {
			http.NotFound(w, r)
			return
		}
		w.Write([]byte(index))
	}))
	t.Cleanup(server.Close)
	return server.URL, broken
}

func newRepositoryList(t *testing.T) RepositoryList {
	t.Helper()
	dir := t.TempDir()
	return RepositoryList{Settings: chart.Settings{
		RepositoryConfig: filepath.Join(dir, "repositories.yaml"), RepositoryCache: filepath.Join(dir, "cache"),
	}}
}

func add(t *testing.T, b RepositoryList, name, url string) {
	t.Helper()
	if added, err := b.Add(t.Context(), Addition{Entry: Entry{Name: name, URL: url}}); err != nil || !added {
		t.Fatalf("adding %s: %t, %v", name, added, err)
	}
}

// TestLockOfTheListCannotBeMade: who can't write beside the list is told so, and not that somebody else is at work.
func TestLockOfTheListCannotBeMade(t *testing.T) {
	b := newRepositoryList(t)
	url, _ := shelf(t)
	if err := os.Mkdir(filepath.Join(filepath.Dir(b.Settings.RepositoryConfig), "repositories.lock"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := b.Add(t.Context(), Addition{Entry: Entry{Name: "x", URL: url}})
	var hinted interface{ Hint() string }
	if err == nil || !strings.Contains(err.Error(), "locking the list of repositories") || !errors.As(err, &hinted) || !strings.Contains(hinted.Hint(), "--repository-config") {
		t.Errorf("got %v", err)
	}
}

func TestAddKeepsWhatIsThere(t *testing.T) {
	b := newRepositoryList(t)
	url, broken := shelf(t)
	add(t, b, "one", url)
	broken.Store(true)
	if added, err := b.Add(t.Context(), Addition{Entry: Entry{Name: "one", URL: url}}); added || err != nil {
		t.Errorf("the same again: %t, %v", added, err)
	}
	var taken *NameTakenError
	if _, err := b.Add(t.Context(), Addition{Entry: Entry{Name: "one", URL: url + "/other"}}); !errors.As(err, &taken) || taken.URL != url {
		t.Errorf("another of that name: %v", err)
	}
	for name, a := range map[string]Addition{
		"without an index":  {Entry: Entry{Name: "two", URL: url}},
		"replaced by none":  {Entry: Entry{Name: "one", URL: url}, Force: true},
		"with a bad name":   {Entry: Entry{Name: "a/b", URL: url}},
		"that is long gone": {Entry: Entry{Name: "stable", URL: "https://kubernetes-charts.storage.googleapis.com"}},
	} {
		if added, err := b.Add(t.Context(), a); added || err == nil {
			t.Errorf("%s: %t, %v", name, added, err)
		}
	}
	if have, err := b.List(); err != nil || !reflect.DeepEqual(have, []Entry{{Name: "one", URL: url}}) {
		t.Errorf("the list has %v, %v", have, err)
	}
}

func TestRemoveEndsAtTheFirstThatIsNotThere(t *testing.T) {
	b := newRepositoryList(t)
	url, _ := shelf(t)
	if err := b.Remove(t.Context(), []string{"one"}, func(string) {}); !errors.Is(err, ErrNoRepositories) {
		t.Errorf("of none: %v", err)
	}
	for _, name := range []string{"one", "two", "three"} {
		add(t, b, name, url)
	}
	var removed []string
	err := b.Remove(t.Context(), []string{"two", "nobody", "three"}, func(name string) { removed = append(removed, name) })
	if err == nil || !strings.Contains(err.Error(), `no repo named "nobody"`) {
		t.Errorf("got %v", err)
	}
	have, err := b.List()
	if err != nil || !slices.Equal(removed, []string{"two"}) || len(have) != 2 || have[1].Name != "three" {
		t.Errorf("removed %v, left %v, %v", removed, have, err)
	}
	if charts := b.Charts("two"); charts != nil {
		t.Errorf("its index is still cached: %v", charts)
	}
}

func TestUpdateTellsOfEach(t *testing.T) {
	b := newRepositoryList(t)
	good, _ := shelf(t)
	bad, broken := shelf(t)
	add(t, b, "good", good)
	add(t, b, "bad", bad)
	broken.Store(true)
	failed := map[string]bool{}
	if err := b.Update(t.Context(), nil, func() {}, func(u Update) { failed[u.Name] = u.Err != nil }); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(failed, map[string]bool{"good": false, "bad": true}) {
		t.Errorf("got %v", failed)
	}
	if err := b.Update(t.Context(), []string{"good", "nobody"}, func() { t.Error("it began") }, func(Update) {}); err == nil {
		t.Error("an unknown name is no error")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Update(ended, nil, func() {}, func(Update) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context: %v", err)
	}
}

func TestSearch(t *testing.T) {
	b := newRepositoryList(t)
	url, _ := shelf(t)
	add(t, b, "local", url)
	for name, test := range map[string]struct {
		query Query
		want  []string
	}{
		"newest release of each": {Query{}, []string{"local/db 2.0.0", "local/web 1.0.0"}},
		"with pre-releases":      {Query{Text: "web", Devel: true}, []string{"local/web 1.1.0-rc.1"}},
		"every version":          {Query{Text: "web", Versions: true}, []string{"local/web 1.0.0", "local/web 0.9.0"}},
		"of a constraint":        {Query{Text: "web", Version: "<1"}, []string{"local/web 0.9.0"}},
		"in descriptions":        {Query{Text: "database"}, []string{"local/db 2.0.0"}},
		"by an expression":       {Query{Text: "^w.b", Regexp: true}, []string{"local/web 1.0.0"}},
		"nothing":                {Query{Text: "syzygy"}, nil},
	} {
		found, err := b.Search(test.query, func(text string) { t.Error(text) })
		var have []string
		for _, f := range found {
			have = append(have, f.Name+" "+f.Version)
		}
		if err != nil || !slices.Equal(have, test.want) {
			t.Errorf("%s: got %v, %v, want %v", name, have, err, test.want)
		}
	}
	if _, err := b.Search(Query{Version: "banana"}, func(string) {}); err == nil {
		t.Error("a bad constraint is no error")
	}
	if _, err := b.Search(Query{Text: "[", Regexp: true}, func(string) {}); err == nil {
		t.Error("a bad expression is no error")
	}
}

func TestVersionsAreNewestFirst(t *testing.T) {
	b := newRepositoryList(t)
	url, _ := shelf(t)
	add(t, b, "local", url)
	want := []string{"1.1.0-rc.1\tCreated: March 2, 2026", "1.0.0\tCreated: February 2, 2026 (deprecated)", "0.9.0\tApp: 8, Created: January 2, 2026"}
	if have := b.Versions("local/web"); !slices.Equal(have, want) {
		t.Errorf("got %q, want %q", have, want)
	}
	if have := b.Versions("web"); have != nil {
		t.Errorf("of no repository: %q", have)
	}
}
