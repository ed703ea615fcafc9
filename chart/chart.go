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

	helmchart "helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/chart/internal/limits"
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
