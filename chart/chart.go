// Package chart turns a Helm chart and values into Kubernetes manifests, by Helm's own engine.
//
//   - Load reads a chart from a directory, an archive, a repository or a registry, with its dependencies.
//   - Values merges what the user gives for it: files, --set and the like.
//   - Chart.Render evaluates the templates: manifest, hooks and notes. It makes requests only if
//     Input.Lookup has a cluster.
//   - CRDs returns the objects of crds/, and Parse those of a manifest.
//
// Below it, retain keeps what templates make up, such as passwords, from one revision to the
// next, repository knows repositories and registries, and develop makes charts.
package chart

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/chart/internal/limits"
	"deployer/chart/internal/yamltext"
	"deployer/internal/kube"
)

// Chart is a loaded chart with its dependencies, ready to be rendered.
type Chart struct {
	// Helm is the chart as Helm's own type. Render doesn't change it; what a
	// release record stores is Rendered.Chart.
	Helm *helmchart.Chart
	// Warnings are what the user should know about the chart, one sentence
	// each: it is deprecated, a dependency has another version than asked for.
	Warnings []string
}

// Name is the chart's name and version, as "web-1.2.0".
func (c *Chart) Name() string {
	if c.Helm == nil || c.Helm.Metadata == nil {
		return ""
	}
	return c.Helm.Metadata.Name + "-" + c.Helm.Metadata.Version
}

// Input is everything a rendering depends on besides the chart.
type Input struct {
	Release, Namespace string
	Revision           int            // 0 means 1
	Upgrade            bool           // .Release.IsUpgrade; false on a first install
	Values             map[string]any // the user's values, without the chart's defaults
	// Server becomes .Capabilities. Without a version, Helm's offline capabilities are used
	// and the APIVersions are added to them; see OfflineServerInfo.
	Server        ServerInfo
	Lookup        Lookup   // what templates find with the lookup function
	SubchartNotes bool     // also render the notes of subcharts
	SkipSchema    bool     // don't check values against values.schema.json
	IncludeCRDs   bool     // put the documents of crds/ at the head of the manifest, as `helm template --include-crds`
	DNS           bool     // let templates resolve host names
	PostRenderer  []string // command and arguments; empty means none
	// WhileRendering is called once while the templates are evaluated, for work that doesn't need their output. Its chart
	// is what becomes Rendered.Chart; it must not use the values, which templates may change. Render waits for
	// it; the context ends when the templates have failed. Where memory is short, it is called after the
	// templates, and not if they have failed. May be nil.
	WhileRendering func(context.Context, *Chart)

	endless func(limits.Limit) string // names the template that has exceeded a limit, if it is known
}

// Rendered is the result of rendering a chart for one revision.
type Rendered struct {
	Manifest string              // all documents that are not hooks, byte for byte what Helm would store
	Hooks    []*helmrelease.Hook // Helm's own type: it is what a release record holds
	Notes    string
	// Chart is the chart as it was rendered and as Helm stores it: disabled
	// dependencies are gone, aliases resolved, imported values in place.
	Chart *helmchart.Chart
	// Documents are the pieces Manifest was made of, in the same order, before
	// any post-renderer.
	Documents []Document
	// MayUseCluster says that the output may depend on the cluster's capabilities or objects;
	// false when no template, value or file can use them.
	MayUseCluster bool
	// Warnings are what the user should know, one sentence each.
	Warnings []string
}

// A Document is one rendered YAML document and the template it came from.
type Document struct {
	Source string // web/templates/deploy.yaml
	Text   string // without separator and source comment
}

// What this package shares with those that read and apply what it renders.
type (
	// A Cluster is a connection to a cluster. One serves all packages of this module.
	Cluster = kube.Cluster
	// ServerInfo is what templates see as .Capabilities: the version of the cluster, and what it serves.
	ServerInfo = kube.ServerInfo
	// A Manifest is an object, and where it comes from.
	Manifest = kube.Manifest
)

// copyMap deep-copies values. nil becomes an empty map, as Helm's merging needs.
func copyMap(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = copyValue(v)
	}
	return out
}

// copyValue deep-copies a value of JSON or YAML, or of a chart. Other types are shared.
func copyValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if v == nil {
			return v
		}
		return copyMap(v)
	case chartutil.Values:
		return copyMap(v)
	case []any:
		if v == nil {
			return v
		}
		out := make([]any, len(v))
		for i := range v {
			out[i] = copyValue(v[i])
		}
		return out
	}
	return v
}

// copyChart copies what rendering changes in a chart and its subcharts: values,
// the list of dependencies and their metadata. Files are shared.
func copyChart(c *helmchart.Chart) *helmchart.Chart {
	out := *c
	if c.Metadata != nil {
		metadata := *c.Metadata
		metadata.Dependencies = copyDependencies(c.Metadata.Dependencies)
		out.Metadata = &metadata
	}
	if c.Values != nil {
		out.Values = copyMap(c.Values)
	}
	var children []*helmchart.Chart
	for _, child := range c.Dependencies() {
		children = append(children, copyChart(child))
	}
	out.SetDependencies(children...)
	return &out
}

func copyDependencies(list []*helmchart.Dependency) []*helmchart.Dependency {
	out := slices.Clone(list)
	for i, d := range list {
		if d != nil {
			dependency := *d
			dependency.ImportValues = append([]any(nil), d.ImportValues...)
			out[i] = &dependency
		}
	}
	return out
}

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

// CRDs returns the documents in crds/ of a chart and its subcharts, which Helm
// never templates, in Helm's order. An object that is in several of these files
// is returned once: a subchart under two aliases brings its files twice. Where
// the definitions differ, the first one counts, as with Helm, which passes over
// what exists already (helm.sh/helm/v3/pkg/action/install.go, installCRDs);
// warnings says so.
func CRDs(c *helmchart.Chart) (manifests []Manifest, warnings []string, err error) {
	return (&Parser{}).CRDs(c)
}

// CRDs is the function CRDs for the charts of several revisions, which mostly have the same definitions.
func (p *Parser) CRDs(c *helmchart.Chart) (manifests []Manifest, warnings []string, err error) {
	var documents []yamltext.Document
	for _, crd := range c.CRDObjects() {
		documents = append(documents, yamltext.SplitManifest(string(crd.File.Data), crd.Filename)...)
	}
	all, err := parseDocuments(documents, p)
	if err != nil {
		return nil, nil, err
	}
	first := map[kube.ID]Manifest{}
	for _, m := range all {
		id := kube.IDOf(m.Object)
		used, isDuplicate := first[id]
		switch {
		case !isDuplicate || id.Name == "":
			first[id] = m
			manifests = append(manifests, m)
		case !reflect.DeepEqual(used.Object.Object, m.Object.Object):
			warnings = append(warnings, fmt.Sprintf("%s is defined in %s and differently in %s: the first one is used, as in Helm", id, used.Source, m.Source))
		}
	}
	return manifests, warnings, nil
}
