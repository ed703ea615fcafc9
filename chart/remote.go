package chart

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/downloader"
	"helm.sh/helm/v3/pkg/getter"
	"helm.sh/helm/v3/pkg/helmpath"
	"helm.sh/helm/v3/pkg/provenance"
	"helm.sh/helm/v3/pkg/registry"
	"helm.sh/helm/v3/pkg/repo"
	"sigs.k8s.io/yaml"

	"deployer/internal/kube"
	"deployer/internal/program"
)

// loadRemote fetches a chart into a directory of its own, so that two runs
// never load each other's download.
func loadRemote(ctx context.Context, ref string, opts LoadOptions) (*helmchart.Chart, error) {
	dir, err := os.MkdirTemp("", "deployer-chart-")
	if err != nil {
		return nil, fmt.Errorf("creating the directory for chart %s: %w", ref, err)
	}
	var c *helmchart.Chart
	err = kube.WaitFor(ctx, func() error {
		defer os.RemoveAll(dir) // leftovers in the temporary directory harm nobody
		verify := downloader.VerifyNever
		if opts.Verify {
			verify = downloader.VerifyAlways
		}
		path, _, err := opts.Download(ref, dir, verify, lineWriter(opts.Progress))
		if err != nil {
			return err
		}
		c, err = readChart(path)
		return err
	})
	if err != nil {
		return nil, NewRemoteError(ref, opts, err)
	}
	return c, nil
}

// NewRemoteError says that a chart could not be fetched, and what to do about it.
func NewRemoteError(ref string, opts LoadOptions, err error) *RemoteError {
	return &RemoteError{Ref: ref, Err: err, hint: remoteHint(ref, opts, err)}
}

func remoteHint(ref string, opts LoadOptions, err error) string {
	if mismatch, ok := errors.AsType[*ArchiveMismatchError](err); ok {
		return mismatch.Hint()
	}
	switch {
	case registry.IsOCI(ref) && withoutTLS(err):
		return plainHTTPHint
	case registry.IsOCI(ref):
		return "check the reference, or log in: " + program.Name + " registry login HOST"
	case opts.Repo != "" && noProtocol().MatchString(err.Error()):
		return "give the URL of a chart repository, such as --repo https://charts.example.com; a chart of one that repo add has named is NAME/" + ref
	case opts.Repo != "" || strings.Contains(ref, "://"):
		return ""
	case !strings.Contains(ref, "/"):
		return fmt.Sprintf("for a local chart write ./%s; for a repository name it: REPO/%s or --repo URL %s", ref, ref, ref)
	}
	// Helm has no error type for it; a wrong guess only gives a worse hint.
	if repo, _, _ := strings.Cut(ref, "/"); strings.Contains(err.Error(), "repo "+repo+" not found") {
		return fmt.Sprintf("to make it known: "+program.Name+" repo add %s URL", repo)
	}
	hint := "update the indexes of the repositories: " + program.Name + " repo update"
	if name := similarChart(ref, opts); name != "" {
		hint = "did you mean " + name + "? Or " + hint
	}
	return hint
}

// similarChart is the chart of a repository whose name is most like the one of a reference, such as repo/web; empty if none is.
func similarChart(ref string, opts LoadOptions) string {
	name, chart, _ := strings.Cut(ref, "/")
	index, err := repo.LoadIndexFile(filepath.Join(opts.Settings.EnvSettings().RepositoryCache, helmpath.CacheIndexFile(name)))
	if err != nil {
		return "" // the hint to update it remains
	}
	if _, known := index.Entries[chart]; known {
		return "" // not the name, but the version is wrong
	}
	if similar := program.Similar(chart, slices.Collect(maps.Keys(index.Entries))); similar != "" {
		return name + "/" + similar
	}
	return ""
}

// Download fetches the archive of a chart, and with verify its signature, into a
// directory. Messages are written to log. It returns the archive's path and who signed it.
//
// Errors for callers: *ArchiveMismatchError.
func (o LoadOptions) Download(ref, dir string, verify downloader.VerificationStrategy, log io.Writer) (string, *provenance.Verification, error) {
	o, err := o.withDefaults()
	if err != nil {
		return "", nil, err
	}
	env := o.Settings.EnvSettings()
	fetcher := newFetcher(ref, o, log)
	if o.Repo != "" {
		if ref, err = o.chartURL(ref, fetcher.getters()); err != nil {
			return "", nil, err
		}
	}
	access := o.Access.accessTo(ref, o.Repo)
	d := downloader.ChartDownloader{
		Out:              log,
		Verify:           verify,
		Keyring:          o.Keyring,
		Getters:          fetcher.getters(),
		Options:          access.getterOptions(),
		RepositoryConfig: env.RepositoryConfig,
		RepositoryCache:  env.RepositoryCache,
	}
	if _, err := os.ReadFile(d.RepositoryConfig); err != nil && o.Repo != "" {
		d.RepositoryConfig = os.DevNull // the list isn't needed, and there may be no home directory to have it in
	}
	if !registry.IsOCI(ref) {
		d.RegistryClient, _ = access.RegistryClient(o.Settings, log, ref) // an error is of credentials that are hardly needed
		return d.DownloadTo(ref, o.Version, dir)
	}
	if d.RegistryClient, err = access.RegistryClient(o.Settings, log, ref); err != nil {
		return "", nil, err
	}
	d.Options = append(d.Options, getter.WithRegistryClient(d.RegistryClient))
	path, signed, err := d.DownloadTo(ref, o.Version, dir)
	if _, notVersion := semver.StrictNewVersion(o.Version); err != nil && notVersion == nil {
		_, _ = d.RegistryClient.Tags(strings.TrimPrefix(ref, registry.OCIScheme+"://")) // which says what it passes over
	}
	return path, signed, err
}

// chartURL looks a chart up in the index of a repository. Helm does the same in repo.FindChartInRepoURL, but writes the index into
// its cache, for which there may be no home directory.
func (o LoadOptions) chartURL(name string, getters getter.Providers) (string, error) {
	dir, err := os.MkdirTemp("", "deployer-index-")
	if err != nil {
		return "", fmt.Errorf("creating the directory for the index of %s: %w", o.Repo, err)
	}
	defer os.RemoveAll(dir) // leftovers in the temporary directory harm nobody
	a := o.Access
	r, err := repo.NewChartRepository(&repo.Entry{
		Name: "repository", URL: o.Repo, Username: a.Username, Password: a.Password, PassCredentialsAll: a.PassCredentials,
		CertFile: a.CertFile, KeyFile: a.KeyFile, CAFile: a.CAFile, InsecureSkipTLSverify: a.InsecureSkipTLS,
	}, getters)
	if err != nil {
		return "", err
	}
	r.CachePath = dir
	file, err := r.DownloadIndexFile()
	if err != nil {
		return "", fmt.Errorf("looks like %q is not a valid chart repository or cannot be reached: %w", o.Repo, err) // Helm's words
	}
	index, err := repo.LoadIndexFile(file)
	if err != nil {
		return "", err
	}
	what := fmt.Sprintf("chart %q", name)
	if o.Version != "" {
		what += fmt.Sprintf(" version %q", o.Version)
	}
	version, err := index.Get(name, o.Version)
	switch {
	case err != nil:
		return "", fmt.Errorf("%s not found in %s repository", what, o.Repo)
	case len(version.URLs) == 0:
		return "", fmt.Errorf("%s has no downloadable URLs", what)
	}
	return repo.ResolveReferenceURL(o.Repo, version.URLs[0])
}

// DependencyOptions say how dependencies are fetched.
type DependencyOptions struct {
	LoadOptions
	SkipRefresh bool // don't download the indexes of all repositories first
	// Out gets Helm's messages, and Log those of the registry client; nil drops
	// them.
	Out, Log io.Writer
}

// UpdateDependencies resolves the dependencies in Chart.yaml, fetches them into charts/ and
// writes Chart.lock. It isn't interruptible, because it writes to the user's chart.
func UpdateDependencies(ctx context.Context, dir string, opts DependencyOptions) error {
	m, err := dependencyManager(ctx, dir, opts)
	if err != nil {
		return err
	}
	if opts.Verify {
		m.Verify = downloader.VerifyAlways
	}
	if err := m.Update(); err != nil {
		return newDependencyError("updating", dir, err)
	}
	return ctx.Err()
}

// BuildDependencies fetches into charts/ what Chart.lock names, or works as UpdateDependencies when there is no Chart.lock.
func BuildDependencies(ctx context.Context, dir string, opts DependencyOptions) error {
	m, err := dependencyManager(ctx, dir, opts)
	if err != nil {
		return err
	}
	if opts.Verify {
		m.Verify = downloader.VerifyIfPossible
	}
	err = m.Build()
	if unknown, ok := errors.AsType[downloader.ErrRepoNotFound](err); ok {
		return program.WithHint(fmt.Errorf("%w. Please add the missing repos via '"+program.Name+" repo add'", unknown), program.Name+" repo add NAME URL")
	}
	if err != nil {
		return newDependencyError("building", dir, err)
	}
	return ctx.Err()
}

func newDependencyError(doing, dir string, err error) *DependencyError {
	e := &DependencyError{Doing: doing, Chart: dir, Err: err}
	if metadata, merr := chartutil.LoadChartfile(filepath.Join(dir, chartutil.ChartfileName)); merr == nil { // otherwise err says so
		for _, d := range metadata.Dependencies {
			e.urls = append(e.urls, d.Repository)
		}
	}
	return e
}

// dependencyManager returns Helm's dependency manager for the chart in dir. It doesn't verify
// signatures. It fails once ctx has ended.
func dependencyManager(ctx context.Context, dir string, opts DependencyOptions) (*downloader.Manager, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	checked, err := opts.LoadOptions.withDefaults()
	if err != nil {
		return nil, err
	}
	opts.LoadOptions = checked
	out, log := cmp.Or[io.Writer](opts.Out, io.Discard), cmp.Or[io.Writer](opts.Log, io.Discard)
	env := opts.Settings.EnvSettings()
	metadata, err := chartutil.LoadChartfile(filepath.Join(dir, chartutil.ChartfileName))
	if err != nil {
		metadata = &helmchart.Metadata{} // the manager says so
	}
	if text, err := os.ReadFile(filepath.Join(dir, "requirements.yaml")); err == nil { // of a chart for Helm 2
		_ = yaml.Unmarshal(text, metadata) // the manager says so
	}
	registries := ociRepositories(metadata)
	client, err := opts.Access.RegistryClient(opts.Settings, log, registries...)
	if err != nil && len(registries) > 0 {
		return nil, err
	}
	fetcher := newFetcher("", LoadOptions{Settings: opts.Settings, Access: opts.Access, AllowMismatch: opts.AllowMismatch}, out)
	fetcher.servers, fetcher.dependencies = registries, metadata.Dependencies
	return &downloader.Manager{
		Out:              out,
		ChartPath:        dir,
		Keyring:          opts.Keyring,
		Getters:          fetcher.getters(),
		RegistryClient:   client,
		SkipUpdate:       opts.SkipRefresh,
		RepositoryConfig: env.RepositoryConfig,
		RepositoryCache:  env.RepositoryCache,
		Debug:            env.Debug,
	}, nil
}
