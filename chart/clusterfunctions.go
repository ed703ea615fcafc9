package chart

import (
	"bytes"
	"fmt"
	"slices"

	helmchart "helm.sh/helm/v3/pkg/chart"
)

// clusterFunctions are the words in templates that read the cluster's capabilities or
// objects.
// https://helm.sh/docs/chart_template_guide/builtin_objects/
var clusterFunctions = []string{"Capabilities", "lookup"}

// mayUseCluster reports whether the output of a chart may depend on the cluster: a template
// of the chart or a subchart contains Capabilities or lookup, or it uses tpl and a value or
// file does. If in doubt, it returns true.
func mayUseCluster(c *helmchart.Chart, user map[string]any) bool {
	charts := allCharts(c)
	inTemplates := func(words ...string) bool {
		return slices.ContainsFunc(charts, func(c *helmchart.Chart) bool {
			return slices.ContainsFunc(c.Templates, func(f *helmchart.File) bool { return containsAny(f.Data, words...) })
		})
	}
	if inTemplates(clusterFunctions...) {
		return true
	}
	if !inTemplates("tpl") {
		return false
	}
	usesFiles := inTemplates("Files")
	return usedInValue(user) || slices.ContainsFunc(charts, func(c *helmchart.Chart) bool {
		return usedInValue(c.Values) || usesFiles && slices.ContainsFunc(c.Files, func(f *helmchart.File) bool {
			return containsAny(f.Data, "{{") && containsAny(f.Data, clusterFunctions...)
		})
	})
}

// allCharts are a chart and its subcharts at any depth, each before its own.
func allCharts(c *helmchart.Chart) []*helmchart.Chart {
	out := []*helmchart.Chart{c}
	for _, child := range c.Dependencies() {
		out = append(out, allCharts(child)...)
	}
	return out
}

// usedInValue reports whether a value, or a key or value in it, has a word of clusterFunctions.
func usedInValue(value map[string]any) bool {
	return containsAny([]byte(fmt.Sprint(value)), clusterFunctions...)
}

func containsAny(text []byte, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return bytes.Contains(text, []byte(word)) })
}
