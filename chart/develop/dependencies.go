package develop

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	helmchart "helm.sh/helm/v3/pkg/chart"

	"deployer/chart/internal/limits"
)

// A Dependency is an entry of Chart.yaml and what charts/ has for it.
type Dependency struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	Repository string `json:"repository"`
	Status     string `json:"status"` // Helm's word: ok, unpacked, missing, wrong version, …
}

// Dependencies compares Chart.yaml of a chart with its charts/. The warnings
// are of charts that Chart.yaml doesn't name. A nil list is a Chart.yaml
// without dependencies. (helm.sh/helm/v3/pkg/action/dependency.go)
func Dependencies(path string) ([]Dependency, []string, error) {
	c, err := limits.Load(path)
	if err != nil {
		return nil, nil, fmt.Errorf("loading chart %s: %w", path, err)
	}
	if c.Metadata.Dependencies == nil {
		return nil, nil, nil
	}
	out := []Dependency{}
	for _, d := range c.Metadata.Dependencies {
		out = append(out, Dependency{Name: d.Name, Version: d.Version, Repository: d.Repository, Status: dependencyStatus(path, d, c)})
	}
	return out, undeclaredCharts(path, c.Metadata.Dependencies), nil
}

// dependencyStatus returns Helm's status of a dependency: "ok" for an archive, "unpacked" for
// a directory or a dependency inside an archived chart.
func dependencyStatus(path string, want *helmchart.Dependency, parent *helmchart.Chart) string {
	archives, err := filepath.Glob(filepath.Join(path, "charts", want.Name+"-*.tgz"))
	if err != nil {
		return "bad pattern"
	}
	if len(archives) > 1 {
		archives = slices.DeleteFunc(archives, func(a string) bool {
			version := strings.TrimPrefix(strings.TrimSuffix(filepath.Base(a), ".tgz"), want.Name+"-")
			_, err := semver.StrictNewVersion(version)
			return err != nil
		})
		if len(archives) > 1 {
			return "too many matches"
		}
	}
	if len(archives) == 1 {
		c, err := limits.Load(archives[0])
		switch {
		case err != nil:
			return "corrupt"
		case c.Name() != want.Name:
			return "misnamed"
		}
		return cmp.Or(whyNotInRange(want.Version, c.Metadata.Version), "ok")
	}
	for _, c := range slices.Backward(parent.Dependencies()) {
		if c.Name() == want.Name {
			return cmp.Or(whyNotInRange(want.Version, c.Metadata.Version), "unpacked")
		}
	}
	return "missing"
}

// whyNotInRange returns why a version doesn't match a constraint; empty when it does.
func whyNotInRange(want, have string) string {
	constraint, cerr := semver.NewConstraint(want)
	version, verr := semver.NewVersion(have)
	switch {
	case want == have:
		return ""
	case cerr != nil || verr != nil:
		return "invalid version"
	case !constraint.Check(version):
		return "wrong version"
	}
	return ""
}

// undeclaredCharts warns of what lies in charts/ without being a dependency.
func undeclaredCharts(path string, wanted []*helmchart.Dependency) []string {
	files, err := filepath.Glob(filepath.Join(path, "charts", "*"))
	if err != nil {
		return nil // the path has characters of patterns in it; the list is complete without
	}
	var warnings []string
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			warnings = append(warnings, err.Error())
			continue
		}
		if !info.IsDir() && filepath.Ext(file) != ".tgz" {
			continue
		}
		c, err := limits.Load(file)
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("%q is not a chart.", file))
			continue
		}
		if !slices.ContainsFunc(wanted, func(d *helmchart.Dependency) bool { return d.Name == c.Name() }) {
			warnings = append(warnings, fmt.Sprintf("%q is not in Chart.yaml.", file))
		}
	}
	return warnings
}
