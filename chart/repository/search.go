package repository

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"helm.sh/helm/v3/cmd/helm/search"
	"helm.sh/helm/v3/pkg/helmpath"
	"helm.sh/helm/v3/pkg/repo"

	"deployer/internal/program"
)

// searchScore is the score from which a chart is no longer a match, as in Helm.
const searchScore = 25

// A Query says which charts to find in the cached indexes.
type Query struct {
	Text     string // empty finds all
	Regexp   bool   // Text is a regular expression
	Versions bool   // every version of a chart, not only the newest
	Version  string // a SemVer constraint; empty means releases
	Devel    bool   // also pre-releases; ignored with Version
}

// A Found chart is one that a query matches.
type Found struct {
	Name        string `json:"name"` // repository/chart
	Version     string `json:"version"`
	AppVersion  string `json:"app_version"`
	Description string `json:"description"`
}

// Search looks through the cached indexes, best matches first. It warns of
// repositories without a readable index. Without repositories the error is
// ErrNoRepositories.
func (l RepositoryList) Search(q Query, warn func(text string)) ([]Found, error) {
	constraint, err := q.constraint()
	if err != nil {
		return nil, err
	}
	file, err := l.load()
	if err != nil {
		return nil, err
	}
	if len(file.Repositories) == 0 {
		return nil, ErrNoRepositories
	}
	index := search.NewIndex()
	for _, e := range file.Repositories {
		content, err := l.index(e.Name)
		if err != nil {
			warn(fmt.Sprintf("Repo %q is corrupt or missing. Try '"+program.Name+" repo update'.", e.Name))
			warn(err.Error())
			continue
		}
		index.AddRepo(e.Name, content, true)
	}
	results := index.All()
	if q.Text != "" {
		if results, err = index.Search(q.Text, searchScore, q.Regexp); err != nil {
			return nil, fmt.Errorf("searching for %q: %w", q.Text, err)
		}
	}
	search.SortScore(results)
	return q.pickVersions(results, constraint), nil
}

func (q Query) constraint() (*semver.Constraints, error) {
	released := ">0.0.0"
	if q.Devel {
		released = ">0.0.0-0"
	}
	c, err := semver.NewConstraint(cmp.Or(q.Version, released))
	if err != nil {
		return nil, fmt.Errorf("--version %s: an invalid version/constraint format: %w", q.Version, err)
	}
	return c, nil
}

// pickVersions keeps the versions that the query allows: of each chart all, or the
// newest, which comes first.
func (q Query) pickVersions(results []*search.Result, constraint *semver.Constraints) []Found {
	found := []Found{}
	seen := map[string]bool{}
	for _, r := range results {
		if !q.Versions && seen[r.Name] {
			continue
		}
		v, err := semver.NewVersion(r.Chart.Version)
		if err != nil || !constraint.Check(v) {
			continue // invalid versions in an index are skipped, as in Helm
		}
		seen[r.Name] = true
		found = append(found, Found{Name: r.Name, Version: r.Chart.Version, AppVersion: r.Chart.AppVersion, Description: r.Chart.Description})
	}
	return found
}

func (l RepositoryList) index(name string) (*repo.IndexFile, error) {
	return repo.LoadIndexFile(filepath.Join(l.cache(), helmpath.CacheIndexFile(name)))
}

// Charts names the charts of one repository from its cached index, as
// repository/chart, sorted. It is for completion: without a readable index there are none.
func (l RepositoryList) Charts(name string) []string {
	index, err := l.index(name)
	if err != nil {
		return nil
	}
	var out []string
	for chart := range index.Entries {
		out = append(out, name+"/"+chart)
	}
	slices.Sort(out)
	return out
}

// Versions lists the versions of repository/chart in the cached index, newest
// first, each with a tab and a description. It is for completion: a chart that
// isn't in the index has no versions.
func (l RepositoryList) Versions(ref string) []string {
	name, chart, ok := strings.Cut(ref, "/")
	if !ok {
		return nil
	}
	index, err := l.index(name)
	if err != nil {
		return nil
	}
	index.SortEntries()
	var out []string
	for _, v := range index.Entries[chart] {
		about := "Created: " + v.Created.Format("January 2, 2006")
		if v.AppVersion != "" {
			about = "App: " + v.AppVersion + ", " + about
		}
		if v.Deprecated {
			about += " (deprecated)"
		}
		out = append(out, v.Version+"\t"+about)
	}
	return out
}
