package chart

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/Masterminds/semver/v3"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/cli"
	"helm.sh/helm/v3/pkg/getter"
	"helm.sh/helm/v3/pkg/helmpath"
	"helm.sh/helm/v3/pkg/registry"
	"helm.sh/helm/v3/pkg/repo"
	"sigs.k8s.io/yaml"

	"deployer/chart/internal/limits"
)

// An archiveCheck compares each chart archive that is fetched with what was asked for:
// with the digest, name and version that the index of its repository has for it, or
// with the name and tag of its reference in a registry. Helm compares none of them.
type archiveCheck struct {
	env        *cli.EnvSettings
	repository string // the one of Helm's list whose index counts; empty is all of them
	name       string // of the chart that was asked for; empty is any chart at the URL
	version    string // constraint that the archive at a URL has to meet; empty is any
	fetched    bool   // only the index that is fetched counts, not those of Helm's list
	allow      func(warning string)

	mu      sync.Mutex
	indexes []chartIndex // fetched
}

// A chartIndex is the index of a repository.
type chartIndex struct {
	source string // name or URL of the repository
	base   string // URL of the repository, for the archives' URLs
	text   []byte
}

// newArchiveCheck checks the archive of ref, which Helm's downloader fetches. A
// mismatch is an error, or where opts allow it a warning.
func newArchiveCheck(ref string, opts LoadOptions, warn func(string)) *archiveCheck {
	c := &archiveCheck{env: opts.Settings.EnvSettings()}
	if opts.AllowMismatch {
		c.allow = warn
	}
	switch {
	case opts.Repo != "":
		c.name, c.fetched = ref, true
	case !strings.Contains(ref, "://"):
		c.repository, c.name, _ = strings.Cut(ref, "/")
	case !registry.IsOCI(ref): // a registry has been asked for the version
		c.version = opts.Version
	}
	return c
}

// wrap returns getters whose archives are checked.
func (c *archiveCheck) wrap(providers getter.Providers) getter.Providers {
	out := make(getter.Providers, 0, len(providers))
	for _, p := range providers {
		out = append(out, getter.Provider{Schemes: p.Schemes, New: func(options ...getter.Option) (getter.Getter, error) {
			inner, err := p.New(options...)
			return checkedGetter{inner, c}, err
		}})
	}
	return out
}

type checkedGetter struct {
	getter.Getter
	check *archiveCheck
}

func (g checkedGetter) Get(href string, options ...getter.Option) (*bytes.Buffer, error) {
	data, err := g.Getter.Get(href, options...)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(href)
	if err != nil {
		return nil, err
	}
	switch {
	case strings.HasSuffix(u.Path, ".prov"): // its signature is checked
	case u.Scheme == registry.OCIScheme:
		err = g.check.checkPulled(u, data.Bytes())
	case path.Base(u.Path) == "index.yaml":
		g.check.rememberIndex(*u, data.Bytes())
	default:
		err = g.check.checkDownloaded(u, data.Bytes())
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

func (c *archiveCheck) rememberIndex(u url.URL, text []byte) {
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "index.yaml"), strings.TrimSuffix(u.RawPath, "index.yaml")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.indexes = append(c.indexes, chartIndex{source: withoutSecrets(u), base: u.String(), text: bytes.Clone(text)})
}

// withoutSecrets is a URL to show.
func withoutSecrets(u url.URL) string {
	u.User, u.RawQuery = nil, ""
	return u.String()
}

// checkDownloaded checks the archive at a URL.
func (c *archiveCheck) checkDownloaded(u *url.URL, data []byte) error {
	metadata := archiveMetadata(data)
	mismatch := c.checkByIndexes(u, data, metadata)
	if mismatch == nil && metadata != nil {
		mismatch = c.checkByCommandLine(withoutSecrets(*u), metadata)
	}
	return c.refuseOrWarn(mismatch)
}

// checkByIndexes compares an archive with what indexes say of it. Several may have it: one that it fits is enough.
func (c *archiveCheck) checkByIndexes(u *url.URL, data []byte, metadata *helmchart.Metadata) error {
	digest := sha256.Sum256(data)
	var mismatch error
	for _, index := range c.candidateIndexes() {
		for _, what := range index.archivesAt(u) {
			if c.name != "" && what.name != path.Base(c.name) {
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
	}
	return mismatch
}

// checkByCommandLine compares an archive with the command line.
func (c *archiveCheck) checkByCommandLine(from string, metadata *helmchart.Metadata) error {
	if c.name != "" && metadata.Name != path.Base(c.name) {
		return &ArchiveMismatchError{From: from, Field: "name", Got: metadata.Name, Want: c.name, By: "the command line"}
	}
	if c.version == "" {
		return nil
	}
	constraint, err := semver.NewConstraint(c.version)
	if err != nil {
		return fmt.Errorf("--version %s: %w", c.version, err)
	}
	if v, err := semver.NewVersion(metadata.Version); err != nil || !constraint.Check(v) {
		return &ArchiveMismatchError{From: from, Field: "version", Got: metadata.Version, Want: c.version, By: "the command line"}
	}
	return nil
}

// checkPulled checks the archive of a reference in a registry, whose layers its client has
// checked by their digests. Helm pushes a chart under its name, tagged with its version.
func (c *archiveCheck) checkPulled(u *url.URL, data []byte) error {
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
	return c.refuseOrWarn(what.check(withoutSecrets(*u), "", metadata))
}

func (c *archiveCheck) refuseOrWarn(mismatch error) error {
	if mismatch == nil || c.allow == nil {
		return mismatch
	}
	c.allow("WARNING: " + mismatch.Error() + "; it is used all the same")
	return nil
}

// candidateIndexes returns the indexes that may list the archive: those that were fetched, and
// unless only they count those in the cache, of the repository asked or of all in Helm's list. An
// unreadable one is left out: whoever resolves the chart with it reports the error.
func (c *archiveCheck) candidateIndexes() []chartIndex {
	c.mu.Lock()
	out := c.indexes
	c.mu.Unlock()
	list, err := repo.LoadFile(c.env.RepositoryConfig)
	if err != nil || c.fetched {
		return out
	}
	for _, e := range list.Repositories {
		if c.repository != "" && e.Name != c.repository {
			continue
		}
		text, err := os.ReadFile(filepath.Join(c.env.RepositoryCache, helmpath.CacheIndexFile(e.Name)))
		if err == nil {
			out = append(out, chartIndex{source: e.Name, base: e.URL, text: text})
		}
	}
	return out
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
				out = append(out, expectation{name: path.Base(name), version: v.Version, digest: v.Digest, by: "the index of repository " + i.source})
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
type expectation struct{ name, version, digest, by string }

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
