package chart

import helmchart "helm.sh/helm/v3/pkg/chart"

// Defaults are the values that a chart and the charts in it have by themselves.
// Nil has none.
func Defaults(c *helmchart.Chart) []map[string]any {
	if c == nil {
		return nil
	}
	out := []map[string]any{c.Values}
	for _, child := range c.Dependencies() {
		out = append(out, Defaults(child)...)
	}
	return out
}
