// Package chart turns a Helm chart and values into Kubernetes manifests.
package chart

import (
	helmchart "helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
	// Server is what .Capabilities tells. Without a version it is what the Helm
	// release binary assumes offline, and the APIVersions come on top; see Offline.
	Server      kube.Server
	Lookup      *kube.Cluster // nil renders offline: the lookup function finds nothing
	LookupCache *LookupCache  // the cluster's answers to lookup that several renderings share; nil asks each time
	// OnLookup is told of each object that the lookup function reads; nil drops that.
	OnLookup      func(*unstructured.Unstructured)
	SubchartNotes bool     // also render the notes of subcharts
	SkipSchema    bool     // don't check values against values.schema.json
	IncludeCRDs   bool     // put the documents of crds/ at the head of the manifest, as `helm template --include-crds`
	DNS           bool     // let templates resolve host names
	PostRenderer  []string // command and arguments; empty means none
}

// Rendered is everything a chart says about one revision.
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
	// MayUseCluster says that what was rendered may depend on what the cluster
	// serves or has; false when neither templates nor values can have asked.
	MayUseCluster bool
	// Warnings are what the user should know, one sentence each.
	Warnings []string
}

// A Document is one rendered YAML document and the template it came from.
type Document struct {
	Source string // web/templates/deploy.yaml
	Text   string // without separator and source comment
}
