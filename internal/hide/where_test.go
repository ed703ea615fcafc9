package hide

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func annotated(kind string, annotations map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "x", "annotations": annotations},
	}}
}

func TestFields(t *testing.T) {
	const env = "spec.template.spec.containers.[].env.[].value"
	for _, c := range []struct {
		paths      string
		hid, shown string // paths with dots; empty for none
	}{
		{"data.*", "data.a data.b.c", "data spec.a"},
		{"$.data.password", "data.password data.password.x", "data.user"},
		{"data.password, spec.token", "data.password spec.token", "spec"},
		{"$.spec.template.spec.containers[*].env[*].value", env, "spec.template.spec.containers.[].env.[].name"},
		{"spec.template.spec.containers.*.env.*.value", env, "spec.template.spec.containers.[].image"},
		{"spec.template.spec.containers[0].env[1].value", env, ""},
		{`spec.template.spec.containers[name="app"].env[name="PASSWORD"].value`, env, ""},
		{`spec.template.spec.containers[?(@.name == 'a,b')].env`, env, "spec.template.spec.containers.[].image"},
		{"spec.template.spec.containers.env.value", env, "spec.template.spec.containers.[].image"},
		{"..password", "password data.password a.[].password.x", "data.user"},
		{"spec..token", "spec.token spec.a.[].b.token", "data.token"},
		{`metadata.annotations['example.com/token']`, "metadata.annotations.example_com/token", "metadata.annotations.b metadata.labels.a"},
		{`metadata.annotations."example.com/token"`, "metadata.annotations.example_com/token", "metadata.annotations.b"},
		{`data['a','b']`, "data.a data.b", "spec.a"},
		{`data.a\,b`, "data.a,b", "data.a"},
		// what can't be read hides everything
		{"data[", "data.a spec.b", "metadata.name metadata.labels.a kind"},
		{"a..", "data.a", "metadata.name"},
		{"", "", "data.a"},
	} {
		for _, annotation := range []string{"deployer.io/sensitive-paths", "werf.io/sensitive-paths"} {
			f := ConfidentialFields(nil, annotated("ConfigMap", map[string]any{annotation: c.paths}))
			for want, list := range map[bool]string{true: c.hid, false: c.shown} {
				for _, path := range strings.Fields(list) {
					names := strings.Split(path, ".")
					for i := range names {
						names[i] = strings.ReplaceAll(names[i], "_", ".")
					}
					if got := f.IsHidden(names); got != want {
						t.Errorf("%s: %q: At(%s) = %v, want %v", annotation, c.paths, path, got, want)
					}
					if _, hides := f.Mask(names, "x"); len(names) > 1 && hides != want {
						t.Errorf("%s: %q: Mask(%s) = %t, want %t", annotation, c.paths, path, hides, want)
					}
				}
			}
		}
	}
}

func TestFieldsOfWholeObjects(t *testing.T) {
	for name, obj := range map[string]*unstructured.Unstructured{
		"a Secret":                      annotated("Secret", nil),
		"a Secret that says it is none": annotated("Secret", map[string]any{"deployer.io/sensitive": "false", "werf.io/sensitive": "false"}),
		"ours":                          annotated("ConfigMap", map[string]any{"deployer.io/sensitive": "true"}),
		"Nelm's":                        annotated("ConfigMap", map[string]any{"werf.io/sensitive": "true"}),
		"a value that can't be read":    annotated("ConfigMap", map[string]any{"deployer.io/sensitive": "yes"}),
	} {
		f := ConfidentialFields(obj)
		for path, want := range map[string]bool{
			"data.a": true, "stringData.a": true, "spec.x.y": true, "metadata.annotations.copy": true,
			"data": false, "type": false, "kind": false, "metadata.labels.a": false, "metadata.annotations.helm_sh/x": false,
		} {
			names := strings.Split(path, ".")
			names[len(names)-1] = strings.ReplaceAll(names[len(names)-1], "_", ".")
			if got := f.IsHidden(names); got != want {
				t.Errorf("%s: At(%s) = %v, want %v", name, path, got, want)
			}
		}
		shown, hides := f.Mask(nil, map[string]any{
			"kind": "K", "type": "t", "data": map[string]any{"a": "x"}, "spec": "x", "list": []any{"x"},
			"metadata": map[string]any{"name": "n", "labels": map[string]any{"a": "b"}, "annotations": map[string]any{"copy": "x", "helm.sh/x": "y"}},
		})
		want := `{"data":{"a":"(hidden)"},"kind":"K","list":["(hidden)"],"metadata":{"annotations":{"copy":"(hidden)","helm.sh/x":"y"},"labels":{"a":"b"},"name":"n"},"spec":"(hidden)","type":"t"}`
		if got := written(shown); got != want || !hides {
			t.Errorf("%s: Mask = %s, %t, want %s", name, got, hides, want)
		}
	}
	if ConfidentialFields(annotated("ConfigMap", map[string]any{"deployer.io/sensitive": "false"})).Any() {
		t.Errorf("a ConfigMap that isn't confidential is")
	}
}
