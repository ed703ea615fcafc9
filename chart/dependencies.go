package chart

import (
	"fmt"
	"slices"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
)

// MissingDependencies names the dependencies of Chart.yaml that charts/ doesn't have. Like
// Helm it asks for the name only.
func MissingDependencies(c *helmchart.Chart) []string {
	var names []string
	for _, want := range c.Metadata.Dependencies {
		if want != nil && !slices.ContainsFunc(c.Dependencies(), func(d *helmchart.Chart) bool { return d.Name() == want.Name }) {
			names = append(names, want.Name)
		}
	}
	return names
}

// mismatchedDependencies warns of dependencies in charts/ of another version than Chart.yaml
// asks for. Helm renders them silently and ignores their conditions, tags and aliases. (helm.sh/helm/v3/pkg/chartutil/dependencies.go)
func mismatchedDependencies(c *helmchart.Chart) []string {
	var warnings []string
	for _, want := range c.Metadata.Dependencies {
		have, fits := "", false
		for _, d := range c.Dependencies() {
			if want == nil || d.Name() != want.Name {
				continue
			}
			have = d.Metadata.Version
			fits = fits || chartutil.IsCompatibleRange(want.Version, have)
		}
		if have != "" && !fits {
			warnings = append(warnings, fmt.Sprintf(
				"chart %s wants %s %s, but charts/ has %s: its condition, tags and alias have no effect",
				c.Name(), want.Name, want.Version, have))
		}
	}
	return warnings
}

// lostAliases warns of charts that are rendered under their own names although Chart.yaml has them under aliases only. original is
// the chart before its dependencies were processed. Where a chart is used twice, Helm 3 changes the entries of its Chart.yaml for
// the first use, and doesn't find the charts in it for the second one. (helm.sh/helm/v3/pkg/chartutil/dependencies.go)
func lostAliases(processed, original *helmchart.Chart) []string {
	var warnings []string
	for _, child := range processed.Dependencies() {
		name, alias := child.Name(), ""
		for _, d := range original.Metadata.Dependencies {
			switch {
			case d != nil && d.Alias == child.Name():
				name = d.Name
			case d != nil && d.Name == child.Name():
				alias = d.Alias
			}
		}
		i := slices.IndexFunc(original.Dependencies(), func(c *helmchart.Chart) bool { return c.Name() == name })
		if i < 0 {
			continue
		}
		isAlsoNamed := slices.ContainsFunc(original.Metadata.Dependencies, func(d *helmchart.Dependency) bool {
			return d != nil && d.Name == child.Name() && (d.Alias == "" || d.Alias == d.Name || !chartutil.IsCompatibleRange(d.Version, child.Metadata.Version))
		})
		if name == child.Name() && alias != "" && !isAlsoNamed {
			warnings = append(warnings, fmt.Sprintf(
				"%s is rendered under its own name, and its condition, tags and alias %s have no effect, because chart %s is used more than once (Helm 3 does the same; Helm 4 doesn't)",
				child.ChartFullPath(), alias, original.Name()))
		}
		warnings = append(warnings, lostAliases(child, original.Dependencies()[i])...)
	}
	return warnings
}
