package chart

import (
	"testing"

	helmchart "helm.sh/helm/v3/pkg/chart"
)

// What a chart drops while an API group doesn't answer is deleted only if the
// chart can't have looked at what the cluster serves.
func TestMayAskCluster(t *testing.T) {
	file := func(name, text string) *helmchart.File { return &helmchart.File{Name: name, Data: []byte(text)} }
	for _, tt := range []struct {
		name   string
		chart  helmchart.Chart
		sub    helmchart.Chart
		values map[string]any
		want   bool
	}{
		{name: "plain templates", chart: helmchart.Chart{Templates: []*helmchart.File{file("templates/a.yaml", "a: {{ .Values.a }}")}}},
		{name: "capabilities", chart: helmchart.Chart{Templates: []*helmchart.File{file("templates/a.yaml", `{{ if .Capabilities.APIVersions.Has "v1" }}a: 1{{ end }}`)}}, want: true},
		{name: "lookup in a helper", chart: helmchart.Chart{Templates: []*helmchart.File{file("templates/_a.tpl", `{{ define "a" }}{{ lookup "v1" "Secret" "" "" }}{{ end }}`)}}, want: true},
		{name: "a subchart", sub: helmchart.Chart{Templates: []*helmchart.File{file("templates/a.yaml", "{{ $.Capabilities.KubeVersion }}")}}, want: true},
		{name: "a value nobody evaluates", chart: helmchart.Chart{Templates: []*helmchart.File{file("templates/a.yaml", "{{ .Values.a }}")}},
			values: map[string]any{"a": "{{ .Capabilities.KubeVersion }}"}},
		{name: "a value for tpl", chart: helmchart.Chart{Templates: []*helmchart.File{file("templates/a.yaml", "{{ tpl .Values.a . }}")}},
			values: map[string]any{"a": []any{map[string]any{"b": "{{ .Capabilities.KubeVersion }}"}}}, want: true},
		{name: "a default of a subchart for tpl of the parent", chart: helmchart.Chart{Templates: []*helmchart.File{file("templates/a.yaml", "{{ tpl .Values.sub.a . }}")}},
			sub: helmchart.Chart{Values: map[string]any{"a": "{{ lookup }}"}}, want: true},
		{name: "a file for tpl", chart: helmchart.Chart{Templates: []*helmchart.File{file("templates/a.yaml", `{{ tpl (.Files.Get "a") . }}`)},
			Files: []*helmchart.File{file("a", "{{ .Capabilities }}")}}, want: true},
		{name: "a file nobody evaluates", chart: helmchart.Chart{Templates: []*helmchart.File{file("templates/a.yaml", `{{ .Files.Get "a" }}`)},
			Files: []*helmchart.File{file("a", "{{ .Capabilities }}")}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.sub.Metadata = &helmchart.Metadata{Name: "sub"}
			tt.chart.AddDependency(&tt.sub)
			if got := mayUseCluster(&tt.chart, tt.values); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
