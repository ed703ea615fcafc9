package chart

import (
	"slices"
	"testing"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"sigs.k8s.io/yaml"
)

// A value that some template may read isn't called a typing error, however the template gets at it.
func TestUnknownValues(t *testing.T) {
	const defaults = "image: {tag: 1}\nlabels: {}\n"
	for name, c := range map[string]struct{ template, given, all, want string }{
		"a typing error":               {"{{ .Values.image.tag }}", "imge: {tag: 2}", "", "imge"},
		"one below a default":          {"{{ .Values.image.tag }}", "image: {tga: 2}", "", "image.tga"},
		"free form":                    {"{{ toYaml .Values.labels }}", "labels: {a: {b: c}}", "", ""},
		"read without a default":       {"{{ if .Values.extra }}x{{ end }}", "extra: {a: b}", "", ""},
		"by its name":                  {"{{ index .Values \"a-b\" }}", "a-b: 1", "", ""},
		"beside one by its name":       {"{{ get $.Values \"a\" }}", "b: 1", "", "b"},
		"by a name that is computed":   {"{{ range list \"a\" }}{{ index $.Values . }}{{ end }}", "a: 1", "", ""},
		"all handed on":                {"{{ with .Values }}{{ .a }}{{ end }}", "a: 1", "", ""},
		"handed on as Values":          {"{{ tpl \"x\" (dict \"Values\" .Values \"x\" 1) }}{{ .Values.a }}", "b: 1", "", "b"},
		"a part handed on as Values":   {"{{ include \"x\" (dict \"Values\" .Values.a) }}", "a: {b: 1}", "", ""},
		"behind braces in a text":      {"{{ printf \"}}\" }}{{ printf \"{{ %s }}\" .Values.a }}", "a: 1", "", ""},
		"in a text that is a value":    {"{{ tpl .Values.extra . }}", "a: 1", "extra: '{{ .Values.a }}'", ""},
		"of all charts":                {"", "global: {a: 1}", "", ""},
		"a word of the text around it": {"# Values of a\n{{ .Values.b }}", "a: 1", "", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			read := func(text string) (out map[string]any) {
				if err := yaml.Unmarshal([]byte(text), &out); err != nil {
					t.Fatal(err)
				}
				return out
			}
			web := &helmchart.Chart{
				Metadata: &helmchart.Metadata{Name: "web"}, Values: read(defaults),
				Raw:       []*helmchart.File{{Name: "values.yaml", Data: []byte(defaults)}},
				Templates: []*helmchart.File{{Name: "templates/a.yaml", Data: []byte(c.template)}},
			}
			got := UnknownValues(web, read(c.given), read(c.all))
			if want := slices.DeleteFunc([]string{c.want}, func(s string) bool { return s == "" }); !slices.Equal(got, want) {
				t.Errorf("%s, given %s: %q, want %q", c.template, c.given, got, want)
			}
		})
	}
}
