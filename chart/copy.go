package chart

import (
	"slices"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
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
