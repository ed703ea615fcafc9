package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	helmchart "helm.sh/helm/v3/pkg/chart"
)

// chartWith is a chart of one template, t.yaml, and values.
func chartWith(template string, values map[string]any) *Chart {
	return &Chart{Helm: &helmchart.Chart{
		Metadata:  &helmchart.Metadata{APIVersion: "v2", Name: "c", Version: "1.0.0"},
		Templates: []*helmchart.File{{Name: "templates/t.yaml", Data: []byte("a: " + template + "\n")}},
		Values:    values,
	}}
}

// TestOnlyCallsMakeAChartRandom, also in branches that aren't taken, in texts for tpl and in values; not in comments, fields and
// other texts.
func TestOnlyCallsMakeAChartRandom(t *testing.T) {
	for _, test := range []struct {
		template     string
		values, user map[string]any
		differs, few bool
	}{
		{template: `{{ .Values.now | default "randAlpha" }}`},
		{template: `{{ .now }}{{ $now := 1 }}{{ $now }}{{ "now" }}{{/* now }} */}}`},
		{template: `now randAlpha 5`},
		{template: `{{ derivePassword 1 "long" "a" "b" "c" }}`},
		{template: "{{ `{{ shuffle .x }}` }}", differs: true, few: true}, // nothing tells that it isn't for tpl
		{template: `{{ randAlphaNum 9 }}`, differs: true},
		{template: `{{ now.Year }}`, differs: true},
		{template: `{{ if false }}{{ range list (uuidv4) }}{{ . }}{{ end }}{{ end }}`, differs: true},
		{template: `{{ (genCA "a" 9).Cert | sha256sum }}`, differs: true},
		{template: `{{ tpl "{{ randBytes 9 }}" . }}`, differs: true},
		{template: `{{ tpl .Values.a . }}`, values: map[string]any{"a": "{{ uuidv4 }}"}, differs: true},
		{template: `{{ .Values.a }}`, values: map[string]any{"a": "{{ uuidv4 }}"}},
		{template: `{{ tpl (index .Values.a 0).b . }}`, user: map[string]any{"a": []any{map[string]any{"b": "{{ now.Year }}"}}}, differs: true},
		{template: `{{ keys .Values | join "" }}`, differs: true, few: true},
		{template: `{{ 1 | randAlphaNum }}`, differs: true, few: true},
		{template: `{{ uuidv4 | trunc 2 }}`, differs: true, few: true},
		{template: `{{ randAlphaNum 9 }}{{ end }}`, differs: true}, // what can't be parsed may call anything it names
	} {
		calls := chartWith(test.template, test.values).TemplateCalls(Input{Values: test.user})
		if calls.MayDiffer() != test.differs || calls.MayComeOutAgain() != test.few {
			t.Errorf("%s: may differ %v, may come out again %v; want %v, %v", test.template, calls.MayDiffer(), calls.MayComeOutAgain(), test.differs, test.few)
		}
	}
}

// TestChecksumsAreReadFromTheTemplates: which keys have hashes of what the chart renders, and of which templates.
func TestChecksumsAreReadFromTheTemplates(t *testing.T) {
	calls := chartWith(`
checksum/secret: {{ include (print $.Template.BasePath "/secret.yaml") . | sha256sum }}
"checksum/values": "{{ toYaml .Values.x | sha256sum | trunc 10 }}"
rollme: {{ randAlphaNum 5 | sha256sum }}
hash: {{ printf "u:%s" $.p | sha256sum }}
both: {{ include "a" . | sha256sum }}
both: {{ randAlphaNum 5 | sha256sum }}
{{- $sum := .Files.Get "x" | sha1sum }}
`, nil).TemplateCalls(Input{})
	for key, want := range map[string]string{
		"checksum/secret": "[/secret.yaml] true", "checksum/values": "[] true", "rollme": "[] false", "hash": "[] false", "both": "[] false", "elsewhere": "[] true",
	} {
		templates, ok := calls.HashOfContent(key)
		if got := fmt.Sprint(slices.Clip(templates), " ", ok); got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
}

// BenchmarkTemplateCalls is what an upgrade pays for asking whether a chart generates anything: of a thousand objects, in templates
// of fifty.
func BenchmarkTemplateCalls(b *testing.B) {
	c := chartWith("", nil)
	text := strings.Repeat("---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: o\ndata:\n  value: {{ if lt 1 (int .Values.changed) }}new-{{ .Values.generation }}{{ else }}old{{ end }}\n", 50)
	for range 20 {
		c.Helm.Templates = append(c.Helm.Templates, &helmchart.File{Name: "templates/t.yaml", Data: []byte(text)})
	}
	for b.Loop() {
		if c.TemplateCalls(Input{}).MayDiffer() {
			b.Fatal("nothing is generated")
		}
	}
}
