// Package repository keeps Helm's list of chart repositories, searches them,
// and fetches and publishes charts.
package repository

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"helm.sh/helm/v3/pkg/getter"
	"helm.sh/helm/v3/pkg/helmpath"
	"helm.sh/helm/v3/pkg/repo"

	"deployer/chart"
	"deployer/internal/kube"
	"deployer/internal/program"
)

// lockTimeout is how long another process may hold the list of repositories;
// Helm waits as long.
const lockTimeout = 30 * time.Second

// ErrNoRepositories says that no repository is configured.
var ErrNoRepositories = errors.New("no repositories configured")

// retiredRepositories maps repositories that no longer exist to their replacements.
// (helm.sh/helm/v3/cmd/helm/repo_add.go)
var retiredRepositories = map[string]string{
	"//kubernetes-charts.storage.googleapis.com":           "https://charts.helm.sh/stable",
	"//kubernetes-charts-incubator.storage.googleapis.com": "https://charts.helm.sh/incubator",
}

// A RepositoryList is the list of repositories in Helm's repositories.yaml, which it
// shares with helm, and the cached index of each.
type RepositoryList struct {
	Settings chart.Settings
	Timeout  time.Duration // for one index; zero is Helm's, two minutes
}

// An Entry is one repository.
type Entry struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// An Addition is a repository to add.
type Addition struct {
	Entry
	Access          chart.Access
	Force           bool // replace an entry of that name
	AllowDeprecated bool // also one that is known to be gone
}

// Add downloads a repository's index and writes it into the list. It returns
// false when it was there already, with the same access.
func (l RepositoryList) Add(ctx context.Context, a Addition) (added bool, err error) {
	if !a.AllowDeprecated {
		for old, instead := range retiredRepositories {
			if strings.Contains(a.URL, old) {
				return false, fmt.Errorf("repo %q is no longer available; try %q instead", a.URL, instead)
			}
		}
	}
	if strings.Contains(a.Name, "/") {
		return false, fmt.Errorf("repository name (%s) contains '/', please specify a different name without '/'", a.Name)
	}
	unlock, err := l.lock(ctx)
	if err != nil {
		return false, err
	}
	defer unlock()
	file, err := l.load()
	if err != nil {
		return false, err
	}
	entry := a.entry()
	if existing := file.Get(a.Name); existing != nil && !a.Force {
		if *existing != entry {
			return false, &NameTakenError{Name: a.Name, URL: existing.URL}
		}
		return false, nil
	}
	if err := l.refresh(ctx, &entry); errors.As(err, new(*addressError)) || errors.As(err, new(*CacheError)) {
		return false, err
	} else if err != nil {
		return false, fmt.Errorf("looks like %q is not a valid chart repository or cannot be reached: %w", a.URL, err)
	}
	file.Update(&entry)
	return true, l.write(file)
}

func (a Addition) entry() repo.Entry {
	return repo.Entry{
		Name:                  a.Name,
		URL:                   a.URL,
		Username:              a.Access.Username,
		Password:              a.Access.Password,
		PassCredentialsAll:    a.Access.PassCredentials,
		CertFile:              a.Access.CertFile,
		KeyFile:               a.Access.KeyFile,
		CAFile:                a.Access.CAFile,
		InsecureSkipTLSverify: a.Access.InsecureSkipTLS,
	}
}

// NameTakenError says that another repository has that name.
type NameTakenError struct{ Name, URL string }

func (e *NameTakenError) Error() string {
	return fmt.Sprintf("repository name (%s) already exists, please specify a different name", e.Name)
}

// Hint says what to do about it.
func (e *NameTakenError) Hint() string {
	return fmt.Sprintf("it has the URL %s; --force-update replaces it", e.URL)
}

// List returns the repositories in the order of the file; none is no error.
func (l RepositoryList) List() ([]Entry, error) {
	file, err := l.load()
	if err != nil {
		return nil, err
	}
	out := []Entry{}
	for _, e := range file.Repositories {
		out = append(out, Entry{Name: e.Name, URL: e.URL})
	}
	return out, nil
}

// Remove removes repositories from the list and deletes their cached indexes. It calls
// removed for each, and stops at the first unknown name.
func (l RepositoryList) Remove(ctx context.Context, names []string, removed func(name string)) error {
	unlock, err := l.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	file, err := l.load()
	if err != nil {
		return err
	}
	if len(file.Repositories) == 0 {
		return ErrNoRepositories
	}
	for _, name := range names {
		if !file.Remove(name) {
			return fmt.Errorf("no repo named %q found", name)
		}
		if err := l.write(file); err != nil {
			return err
		}
		for _, cached := range []string{helmpath.CacheChartsFile(name), helmpath.CacheIndexFile(name)} {
			if err := os.Remove(filepath.Join(l.cache(), cached)); err != nil && !os.IsNotExist(err) {
				return fmt.Errorf("removing the cached index of repository %s: %w", name, err)
			}
		}
		removed(name)
	}
	return nil
}

// An Update is the result of refreshing one repository's index.
type Update struct {
	Entry
	Err error
}

// Update downloads the indexes of the named repositories, or of all, in parallel. It calls
// done for each, one at a time, also for a failed download. Its error says that it couldn't
// start.
func (l RepositoryList) Update(ctx context.Context, names []string, begin func(), done func(Update)) error {
	file, err := l.load()
	if err != nil {
		return err
	}
	if len(file.Repositories) == 0 {
		return errors.New("no repositories found. You must add one before updating")
	}
	for _, name := range names {
		if !file.Has(name) {
			return fmt.Errorf("no repositories found matching '%s'.  Nothing will be updated", name)
		}
	}
	wanted := file.Repositories
	if len(names) > 0 {
		wanted = slices.DeleteFunc(wanted, func(e *repo.Entry) bool { return !slices.Contains(names, e.Name) })
	}
	begin()
	var group sync.WaitGroup
	var calling sync.Mutex // of done, one at a time
	for _, e := range wanted {
		group.Go(func() {
			err := l.refresh(ctx, e)
			calling.Lock()
			defer calling.Unlock()
			done(Update{Entry: Entry{Name: e.Name, URL: e.URL}, Err: err})
		})
	}
	group.Wait()
	return ctx.Err()
}

// refresh downloads the index of one repository into the cache.
func (l RepositoryList) refresh(ctx context.Context, e *repo.Entry) error {
	var options []getter.Option
	if l.Timeout > 0 {
		options = append(options, getter.WithTimeout(l.Timeout))
	}
	access := chart.Access{PassCredentials: e.PassCredentialsAll, CertFile: e.CertFile, KeyFile: e.KeyFile, CAFile: e.CAFile, InsecureSkipTLS: e.InsecureSkipTLSverify}
	r, err := repo.NewChartRepository(e, l.Settings.Getters(access, e.URL, options...))
	if err != nil {
		return &addressError{err}
	}
	r.CachePath = l.cache()
	err = kube.WaitFor(ctx, func() error {
		_, err := r.DownloadIndexFile()
		return err
	})
	if failed, ok := errors.AsType[*os.PathError](err); ok && filepath.Dir(failed.Path) == filepath.Clean(r.CachePath) {
		return &CacheError{err}
	}
	return err
}

// A CacheError says that the index of a repository can't be written.
type CacheError struct{ Err error }

func (e *CacheError) Error() string {
	return fmt.Sprintf("writing the index of the repository: %v", e.Err)
}

func (e *CacheError) Unwrap() error { return e.Err }

// Hint says where else to write it.
func (e *CacheError) Hint() string {
	return "name a directory that can be written to: --repository-cache DIR, HELM_REPOSITORY_CACHE or HELM_CACHE_HOME"
}

// An addressError is a URL that nothing can be fetched from, in Helm's words.
type addressError struct{ error }

func (e *addressError) Unwrap() error { return e.error }

// Hint says what a repository's URL looks like.
func (e *addressError) Hint() string {
	return "a chart repository has a URL such as https://charts.example.com"
}

func (l RepositoryList) path() string  { return l.Settings.EnvSettings().RepositoryConfig }
func (l RepositoryList) cache() string { return l.Settings.EnvSettings().RepositoryCache }

func (l RepositoryList) load() (*repo.File, error) {
	file, err := repo.LoadFile(l.path())
	if errors.Is(err, os.ErrNotExist) {
		return repo.NewFile(), nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the list of repositories %s: %w", l.path(), err)
	}
	return file, nil
}

func (l RepositoryList) write(file *repo.File) error {
	if err := file.WriteFile(l.path(), 0o600); err != nil {
		return hintAtFile(fmt.Errorf("writing the list of repositories: %w", err))
	}
	return nil
}

// hintAtFile says what to do about a list that can't be written.
func hintAtFile(err error) error {
	return program.WithHint(err, "name a file that can be written to: --repository-config FILE, HELM_REPOSITORY_CONFIG or HELM_CONFIG_HOME")
}

// lock keeps other processes, also helm, from writing the list. It uses Helm's lock file.
func (l RepositoryList) lock(ctx context.Context) (unlock func(), err error) {
	path := l.path()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, hintAtFile(fmt.Errorf("creating the directory for the list of repositories: %w", err))
	}
	name := path + ".lock"
	if ext := filepath.Ext(path); ext != "" && len(ext) < len(path) {
		name = strings.TrimSuffix(path, ext) + ".lock"
	}
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	file := flock.New(name)
	switch _, err := file.TryLockContext(ctx, 100*time.Millisecond); {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("waiting for another process to release %s: %w", name, err)
	case err != nil:
		return nil, hintAtFile(fmt.Errorf("locking the list of repositories: %w", err))
	}
	return func() { _ = file.Unlock() }, nil // the lock ends with the process at the latest
}
