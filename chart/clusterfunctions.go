package chart

import (
	"strings"

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
	templates, files := templatesAndFiles(c)
	if containsAny(templates, clusterFunctions...) {
		return true
	}
	if !containsAny(templates, "tpl") {
		return false
	}
	values := &valueTexts{}
	values.read(user)
	values.readAll(c)
	return containsAny(values.found, clusterFunctions...) || containsAny(templates, "Files") && containsAny(files, clusterFunctions...)
}

// templatesAndFiles are the templates and the other files of a chart and its subcharts.
func templatesAndFiles(c *helmchart.Chart) (templates, files []string) {
	for _, f := range c.Templates {
		templates = append(templates, string(f.Data))
	}
	for _, f := range c.Files {
		if strings.Contains(string(f.Data), "{{") {
			files = append(files, string(f.Data))
		}
	}
	for _, child := range c.Dependencies() {
		t, f := templatesAndFiles(child)
		templates, files = append(templates, t...), append(files, f...)
	}
	return templates, files
}

// valueTexts collects the texts in values.
type valueTexts struct{ found []string }

func (v *valueTexts) readAll(c *helmchart.Chart) {
	v.read(c.Values)
	for _, child := range c.Dependencies() {
		v.readAll(child)
	}
}

func (v *valueTexts) read(value any) {
	switch value := value.(type) {
	case string:
		v.found = append(v.found, value)
	case map[string]any:
		for key, item := range value {
			v.found = append(v.found, key)
			v.read(item)
		}
	case []any:
		for _, item := range value {
			v.read(item)
		}
	}
}

func containsAny(texts []string, words ...string) bool {
	for _, text := range texts {
		for _, word := range words {
			if strings.Contains(text, word) {
				return true
			}
		}
	}
	return false
}
