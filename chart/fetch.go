package chart

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/Masterminds/semver/v3"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/getter"
	"helm.sh/helm/v3/pkg/helmpath"
	"helm.sh/helm/v3/pkg/registry"
	"helm.sh/helm/v3/pkg/repo"
	"sigs.k8s.io/yaml"

	"deployer/chart/internal/limits"
)

// A fetcher fetches what Helm's libraries ask for: indexes, archives and their signatures. It knows the access to
// each server, and compares each archive with what was asked for: with the digest, name and version that the index of
// its repository has for it, or with the name and tag of its reference in a registry. Helm compares none of them.
type fetcher struct {
	ref        string // that the user has named; empty for dependencies
	settings   Settings
	access     Access   // to servers whose repository isn't in Helm's list
	servers    []string // that it is for, by URL or reference
	log        io.Writer
	repository string // the one of Helm's list whose index counts; empty is all of them
	name       string // of the chart that was asked for; empty is any chart at the URL
	version    string // constraint that the archive at a URL has to meet; empty is any
	fetched    bool   // only the index that is fetched counts, not those of Helm's list
	allow      bool   // a mismatch is only a warning

	dependencies []*helmchart.Dependency // of the chart whose dependencies are fetched

	mu      sync.Mutex
	indexes []chartIndex             // fetched
	listed  map[string][]expectation // by the URL of an archive
}

// A chartIndex is the index of a repository.
type chartIndex struct {
	source string      // name or URL of the repository
	base   string      // URL of the repository, for the archives' URLs
	entry  *repo.Entry // of Helm's list; nil if it isn't in it
	text   []byte
}

// newFetcher returns the fetcher of a chart. Warnings are written to log.
func newFetcher(ref string, opts LoadOptions, log io.Writer) *fetcher {
	f := &fetcher{ref: ref, settings: opts.Settings, access: opts.Access, servers: []string{cmp.Or(opts.Repo, ref)}, log: log, allow: opts.AllowMismatch,
		listed: map[string][]expectation{}}
	switch {
	case opts.Repo != "":
		f.name, f.fetched = ref, true
	case !strings.Contains(ref, "://"):
		f.repository, f.name, _ = strings.Cut(ref, "/")
	case !registry.IsOCI(ref): // a registry has been asked for the version
		f.version = opts.Version
	}
	return f
}

// getters are Helm's, by which f fetches.
func (f *fetcher) getters() getter.Providers {
	out := getter.All(f.settings.EnvSettings())
	for i, p := range out {
		out[i].New = func(options ...getter.Option) (getter.Getter, error) {
			return &checkedGetter{fetcher: f, helms: p, options: options}, nil
		}
	}
	return out
}

// A checkedGetter fetches by a getter of Helm.
type checkedGetter struct {
	*fetcher
	helms   getter.Provider
	options []getter.Option
}

// Get fetches from a URL. It keeps the options of earlier calls, as Helm's getters do: its downloader gives none for the
// signature of an archive that it has fetched.
func (g *checkedGetter) Get(href string, options ...getter.Option) (*bytes.Buffer, error) {
	u, err := url.Parse(href)
	if err != nil {
		return nil, err
	}
	g.options = append(g.options, options...)
	own, err := g.optionsFor(u)
	if err != nil {
		return nil, err
	}
	inner, err := g.helms.New(slices.Concat(g.options, own)...)
	if err != nil {
		return nil, err
	}
	data, err := inner.Get(href)
	if err != nil {
		return nil, err
	}
	switch {
	case strings.HasSuffix(u.Path, ".prov"): // its signature is checked
	case u.Scheme == registry.OCIScheme:
		err = g.checkPulled(u, data.Bytes())
	case isIndex(u):
		g.rememberIndex(*u, data.Bytes())
	default:
		err = g.checkDownloaded(u, data.Bytes())
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

// optionsFor are the options for a URL that Helm doesn't set, or sets for servers that are given too much.
func (f *fetcher) optionsFor(u *url.URL) ([]getter.Option, error) {
	access, servers := f.accessTo(u)
	switch u.Scheme {
	case "http", "https":
		options, err := f.settings.httpOptions(access, servers)
		if f.ref == "" && !isIndex(u) { // Helm takes the password of whatever repository lists the URL first
			e := cmp.Or(f.entryOf(u), &repo.Entry{URL: u.String()})
			options = append(options, getter.WithURL(e.URL), getter.WithBasicAuth(e.Username, e.Password), getter.WithPassCredentialsAll(e.PassCredentialsAll))
		}
		return options, err
	case registry.OCIScheme:
		if host := strings.ToLower(u.Host); access.PassCredentials || slices.Contains(registryHosts(f.servers...), host) {
			return nil, nil // the client that Helm asks has the access
		} else if !slices.Contains(registryHosts(servers...), host) {
			access = access.withoutCredentials() // an index may name any registry
		}
		access.Username, access.Password = "", "" // which are the command line's
		client, err := access.RegistryClient(f.settings, f.log, u.String())
		return []getter.Option{getter.WithRegistryClient(client)}, err
	}
	return nil, nil // a plugin's
}

// accessTo returns the access to a URL, apart from the password for it, and the servers that it is for.
func (f *fetcher) accessTo(u *url.URL) (Access, []string) {
	a := f.access
	if f.ref == "" && u.Scheme != registry.OCIScheme {
		a = Access{} // as in Helm, the command line's is for registries
	}
	e := f.entryOf(u)
	if e == nil {
		return a, f.servers
	}
	if e.CertFile != "" || e.KeyFile != "" || e.CAFile != "" {
		a.CertFile, a.KeyFile, a.CAFile = e.CertFile, e.KeyFile, e.CAFile
	}
	switch {
	case f.ref == "":
		a.InsecureSkipTLS, a.PassCredentials = e.InsecureSkipTLSverify, a.PassCredentials || e.PassCredentialsAll
	case e.Username != "" && e.Password != "":
		a.PassCredentials = e.PassCredentialsAll
	}
	return a, []string{e.URL}
}

func isIndex(u *url.URL) bool { return path.Base(u.Path) == "index.yaml" }

// entryOf is the repository of Helm's list whose settings are for a URL; nil if none is known. For the archive of a dependency,
// and its signature, it is the one that the dependency names. Another one whose index lists the archive may only say how to
// reach its own server.
func (f *fetcher) entryOf(u *url.URL) *repo.Entry {
	for _, e := range f.entries() {
		index, err := repo.ResolveReferenceURL(e.URL, "index.yaml")
		if e.Name == f.repository || isIndex(u) && !f.fetched && err == nil && index == u.String() {
			return e
		}
	}
	if isIndex(u) {
		return nil
	}
	archive := *u
	archive.Path, archive.RawPath = strings.TrimSuffix(u.Path, ".prov"), strings.TrimSuffix(u.RawPath, ".prov")
	var best *repo.Entry
	rank := 0
	for _, what := range f.listings(&archive) {
		if what.entry == nil {
			continue
		}
		here := 0
		if what.named {
			here = 2
		}
		if sameHost(what.entry.URL, u.String()) {
			here++
		}
		if here > rank {
			best, rank = what.entry, here
		}
	}
	return best
}

// entries are those of Helm's list. One that can't be read has none: who resolves a chart with it reports the error.
func (f *fetcher) entries() []*repo.Entry {
	list, err := repo.LoadFile(f.settings.EnvSettings().RepositoryConfig)
	if err != nil {
		return nil
	}
	return list.Repositories
}

func (f *fetcher) rememberIndex(u url.URL, text []byte) {
	entry := f.entryOf(&u)
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "index.yaml"), strings.TrimSuffix(u.RawPath, "index.yaml")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.indexes = append(f.indexes, chartIndex{source: withoutSecrets(u), base: u.String(), entry: entry, text: bytes.Clone(text)})
}

// withoutSecrets is a URL to show.
func withoutSecrets(u url.URL) string {
	u.User, u.RawQuery = nil, ""
	return u.String()
}

// checkDownloaded checks the archive at a URL.
func (f *fetcher) checkDownloaded(u *url.URL, data []byte) error {
	metadata := archiveMetadata(data)
	mismatch := f.checkByIndexes(u, data, metadata)
	if mismatch == nil && metadata != nil {
		mismatch = f.checkByCommandLine(withoutSecrets(*u), metadata)
	}
	return f.refuseOrWarn(mismatch)
}

// checkByIndexes compares an archive with what indexes say of it. Several may have it: one that it fits is enough. That of a
// repository that a dependency names for it leaves no say to others.
func (f *fetcher) checkByIndexes(u *url.URL, data []byte, metadata *helmchart.Metadata) error {
	digest := sha256.Sum256(data)
	listings := f.listings(u)
	isNamed := slices.ContainsFunc(listings, func(what expectation) bool { return what.named })
	var mismatch error
	for _, what := range listings {
		if f.name != "" && what.name != path.Base(f.name) || isNamed && !what.named {
			continue
		}
		if u.Scheme != "http" && u.Scheme != "https" {
			what.digest = "" // a plugin's: helm-git packs the archive anew each time
		}
		err := what.check(withoutSecrets(*u), hex.EncodeToString(digest[:]), metadata)
		if err == nil {
			return nil
		}
		mismatch = err
	}
	return mismatch
}

// checkByCommandLine compares an archive with the command line.
func (f *fetcher) checkByCommandLine(from string, metadata *helmchart.Metadata) error {
	if f.name != "" && metadata.Name != path.Base(f.name) {
		return &ArchiveMismatchError{From: from, Field: "name", Got: metadata.Name, Want: f.name, By: "the command line"}
	}
	if f.version == "" {
		return nil
	}
	constraint, err := semver.NewConstraint(f.version)
	if err != nil {
		return fmt.Errorf("--version %s: %w", f.version, err)
	}
	if v, err := semver.NewVersion(metadata.Version); err != nil || !constraint.Check(v) {
		return &ArchiveMismatchError{From: from, Field: "version", Got: metadata.Version, Want: f.version, By: "the command line"}
	}
	return nil
}

// checkPulled checks the archive of a reference in a registry, whose layers its client has
// checked by their digests. Helm pushes a chart under its name, tagged with its version.
func (f *fetcher) checkPulled(u *url.URL, data []byte) error {
	metadata := archiveMetadata(data)
	if metadata == nil {
		return nil
	}
	ref, _, _ := strings.Cut(path.Base(u.Path), "@")
	name, tag, _ := strings.Cut(ref, ":")
	what := expectation{name: name, by: "its reference"}
	if _, err := semver.NewVersion(strings.ReplaceAll(tag, "_", "+")); err == nil {
		what.version = strings.ReplaceAll(tag, "_", "+")
	}
	return f.refuseOrWarn(what.check(withoutSecrets(*u), "", metadata))
}

func (f *fetcher) refuseOrWarn(mismatch error) error {
	if mismatch != nil && f.allow {
		fmt.Fprintf(f.log, "WARNING: %v; it is used all the same\n", mismatch)
		return nil
	}
	return mismatch
}

// listings are what indexes say of the archive at a URL: those that were fetched, and unless only they count those in the
// cache, of the repository asked or of all in Helm's list. An unreadable one is left out: whoever resolves the chart with it
// reports the error.
func (f *fetcher) listings(u *url.URL) []expectation {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known, ok := f.listed[u.String()]; ok {
		return known
	}
	indexes := f.indexes
	for _, e := range f.entries() {
		if f.fetched || f.repository != "" && e.Name != f.repository {
			continue
		}
		text, err := os.ReadFile(filepath.Join(f.settings.EnvSettings().RepositoryCache, helmpath.CacheIndexFile(e.Name)))
		if err == nil {
			indexes = append(indexes, chartIndex{source: e.Name, base: e.URL, entry: e, text: text})
		}
	}
	var out []expectation
	for _, index := range indexes {
		for _, what := range index.archivesAt(u) {
			what.named = f.isNamed(index, what)
			out = append(out, what)
		}
	}
	f.listed[u.String()] = out
	return out
}

// isNamed reports whether a dependency names the repository of an index, and what the index has may be what it asks for.
func (f *fetcher) isNamed(index chartIndex, what expectation) bool {
	return slices.ContainsFunc(f.dependencies, func(d *helmchart.Dependency) bool {
		if d == nil || d.Name != what.name || d.Version != "" && !chartutil.IsCompatibleRange(d.Version, what.version) {
			return false
		}
		isByName := index.entry != nil && (d.Repository == "@"+index.entry.Name || d.Repository == "alias:"+index.entry.Name)
		return isByName || strings.TrimRight(d.Repository, "/") == strings.TrimRight(index.base, "/")
	})
}

// archivesAt are what an index says of the archives at a URL, by the name of their chart.
func (i chartIndex) archivesAt(u *url.URL) []expectation {
	file := path.Base(u.Path)
	if !bytes.Contains(i.text, []byte(file)) && !bytes.Contains(i.text, []byte(path.Base(u.EscapedPath()))) {
		return nil // reading a large index takes seconds
	}
	var index struct {
		Entries map[string][]struct {
			Version string   `json:"version"`
			Digest  string   `json:"digest"`
			URLs    []string `json:"urls"`
		} `json:"entries"`
	}
	read := func(data []byte, into any) error { return yaml.Unmarshal(data, into) }
	if json.Valid(i.text) {
		read = json.Unmarshal
	}
	if read(i.text, &index) != nil {
		return nil // Helm has found no archive in it either
	}
	var out []expectation
	for name, versions := range index.Entries {
		for _, v := range versions {
			if i.resolvesTo(v.URLs, u) {
				out = append(out, expectation{name: path.Base(name), version: v.Version, digest: v.Digest, by: "the index of repository " + i.source, entry: i.entry})
			}
		}
	}
	return out
}

// resolvesTo reports whether one of an entry's URLs is u, in either of Helm's ways to
// resolve them: that of repositories, and that of dependencies, to which a path that
// begins with a slash is below the repository too.
func (i chartIndex) resolvesTo(urls []string, u *url.URL) bool {
	for _, text := range urls {
		full, err := repo.ResolveReferenceURL(i.base, text)
		if err != nil {
			continue
		}
		v, err := url.Parse(full)
		if err != nil || origin(v) != origin(u) || v.RawQuery != u.RawQuery {
			continue
		}
		base, err := url.Parse(i.base)
		below := err == nil && strings.HasPrefix(text, "/") && path.Join(base.Path, text) == path.Clean(u.Path)
		if below || path.Clean(v.Path) == path.Clean(u.Path) {
			return true
		}
	}
	return false
}

// archiveMetadata returns the Chart.yaml of an archive; nil when it can't be read, which the
// loading of the chart then reports. It uses Helm's loader, because an archive may have several, and
// another reader may take one that doesn't count for Helm.
func archiveMetadata(data []byte) *helmchart.Metadata {
	loaded, err := limits.LoadArchive(data)
	if err != nil {
		return nil
	}
	return loaded.Metadata
}

// An expectation is what an index or a reference says of an archive. Empty fields aren't checked.
type expectation struct {
	name, version, digest, by string
	entry                     *repo.Entry // of Helm's list, whose index says it; nil if none does
	named                     bool        // a dependency names that repository for it
}

func (e expectation) check(from, digest string, metadata *helmchart.Metadata) error {
	mismatch := func(field, got, want string) error {
		return &ArchiveMismatchError{From: from, Field: field, Got: got, Want: want, By: e.by}
	}
	if want := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(e.digest)), "sha256:"); want != "" && want != digest {
		return mismatch("digest", digest, want)
	}
	if metadata == nil {
		return nil
	}
	if e.name != "" && metadata.Name != e.name {
		return mismatch("name", metadata.Name, e.name)
	}
	if e.version != "" && !sameVersion(metadata.Version, e.version) {
		return mismatch("version", metadata.Version, e.version)
	}
	return nil
}

func sameVersion(a, b string) bool {
	v, err := semver.NewVersion(a)
	if err != nil {
		return a == b
	}
	w, err := semver.NewVersion(b)
	return err == nil && v.Equal(w)
}
