package chart

import (
	"reflect"
	"strings"
	"testing"

	helmchart "helm.sh/helm/v3/pkg/chart"

	"deployer/internal/kube"
)

// A subchart under two aliases brings its crds/ twice. Helm installs that, and
// passes over definitions that are there already.
func TestDefinitionsInSeveralSubcharts(t *testing.T) {
	crd := func(name, more string) string {
		return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + name + ".example.com}\n" + more
	}
	subchart := func(name, file string) *helmchart.Chart {
		return &helmchart.Chart{
			Metadata: &helmchart.Metadata{Name: name, Version: "1.0.0"},
			Files:    []*helmchart.File{{Name: "crds/all.yaml", Data: []byte(file)}},
		}
	}
	for _, tt := range []struct {
		name, one, two string
		want           string
		warnings       []string
	}{
		{"equal", crd("a", "spec: {x: 1}\n") + "---\n" + crd("b", ""), crd("a", "# the same\nspec: {x: 1}\n") + "---\n" + crd("b", ""),
			"a.example.com of web/charts/one/crds/all.yaml, b.example.com of web/charts/one/crds/all.yaml", nil},
		{"different", crd("a", "spec: {x: 1}\n"), crd("a", "spec: {x: 2}\n") + "---\n" + crd("c", ""),
			"a.example.com of web/charts/one/crds/all.yaml, c.example.com of web/charts/two/crds/all.yaml",
			[]string{"CustomResourceDefinition/a.example.com is defined in web/charts/one/crds/all.yaml and differently in web/charts/two/crds/all.yaml: the first one is used, as in Helm"}},
		{"twice in a file", crd("a", "") + "---\n" + crd("a", ""), crd("b", ""),
			"a.example.com of web/charts/one/crds/all.yaml, b.example.com of web/charts/two/crds/all.yaml", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			web := &helmchart.Chart{Metadata: &helmchart.Metadata{Name: "web", Version: "1.0.0"}}
			web.AddDependency(subchart("one", tt.one), subchart("two", tt.two))
			manifests, warnings, err := CRDs(web)
			if err != nil {
				t.Fatal(err)
			}
			if got := sources(manifests); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if strings.Join(warnings, "\n") != strings.Join(tt.warnings, "\n") {
				t.Errorf("warnings %q, want %q", warnings, tt.warnings)
			}
		})
	}
}

func sources(manifests []kube.Manifest) string {
	var out []string
	for _, m := range manifests {
		out = append(out, m.Object.GetName()+" of "+m.Source)
	}
	return strings.Join(out, ", ")
}

// What one revision's definition is must not be taken for another's, though most are the same.
func TestDefinitionsOfSeveralRevisions(t *testing.T) {
	chartWithCRD := func(more string) *helmchart.Chart {
		text := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.example.com}\n" + more
		return &helmchart.Chart{
			Metadata: &helmchart.Metadata{Name: "c"},
			Files:    []*helmchart.File{{Name: "crds/a.yaml", Data: []byte(text)}},
		}
	}
	var parser Parser
	var objects []kube.Manifest
	for _, more := range []string{"spec: {group: a}\n", "spec: {group: b}\n", "spec: {group: a}\n"} {
		manifests, _, err := parser.CRDs(chartWithCRD(more))
		if err != nil || len(manifests) != 1 {
			t.Fatalf("%d definitions, %v", len(manifests), err)
		}
		alone, _, err := CRDs(chartWithCRD(more))
		if err != nil || !reflect.DeepEqual(alone, manifests) {
			t.Errorf("definition %v, want %v: %v", manifests, alone, err)
		}
		objects = append(objects, manifests...)
	}
	if objects[0].Object != objects[2].Object {
		t.Error("the same definition was decoded twice")
	}
}
