package chart

import (
	"context"
	"testing"

	helmchart "helm.sh/helm/v3/pkg/chart"

	"deployer/chart/internal/limits"
)

// Work while a chart is rendered gets the chart that is recorded, once however often the chart is rendered, and is over
// when the rendering is. When that fails, it is told to end, or isn't begun where memory is short.
func TestWorkWhileRendering(t *testing.T) {
	limit := limits.ProcessMemory
	defer func() { limits.ProcessMemory = limit }()
	for _, of := range []struct {
		template string
		memory   int64
		fails    bool
		calls    int
	}{
		{`{{ randAlphaNum 9 }}`, 1 << 32, false, 1},
		{`{{ randAlphaNum 9 }}`, 1 << 29, false, 1},
		{`{{ fail (randAlphaNum 9) }}`, 1 << 32, true, 1},
		{`{{ fail (randAlphaNum 9) }}`, 1 << 29, true, 0},
	} {
		limits.ProcessMemory = func() int64 { return of.memory }
		c := chartWith(of.template, nil)
		c.Helm.Metadata.Dependencies = []*helmchart.Dependency{{Name: "child", Version: "1.0.0", Condition: "child.enabled"}}
		c.Helm.AddDependency(&helmchart.Chart{Metadata: &helmchart.Metadata{APIVersion: "v2", Name: "child", Version: "1.0.0"}})
		var got []*helmchart.Chart
		in := Input{Release: "r", Namespace: "n", Values: map[string]any{"child": map[string]any{"enabled": false}}}
		in.WhileRendering = func(ctx context.Context, c *Chart) {
			if of.fails {
				<-ctx.Done()
			}
			got = append(got, c.Helm)
		}
		render := func() (*Rendered, error) {
			out, _, err := c.RenderTwice(context.Background(), in)
			return out, err
		}
		if of.fails { // the second rendering would be abandoned, and go on in the next case
			render = func() (*Rendered, error) { return c.Render(context.Background(), in) }
		}
		out, err := render()
		if (err != nil) != of.fails {
			t.Fatalf("%v: error %v", of, err)
		}
		if _, err := c.RenderAgain(context.Background(), in); (err != nil) != of.fails {
			t.Fatalf("%v: again: error %v", of, err)
		}
		if len(got) != of.calls {
			t.Errorf("%v: called %d times", of, len(got))
		}
		for _, c := range got {
			if len(c.Dependencies()) != 0 {
				t.Errorf("%v: the chart has the disabled dependency", of)
			}
			if !of.fails && c != out.Chart {
				t.Errorf("%v: called with another chart than the one that is recorded", of)
			}
		}
	}
}

// What is rendered beside the first rendering has to be what is rendered after it: the same but for what is generated.
func TestRenderTwiceIsRenderAndRenderAgain(t *testing.T) {
	for _, template := range []string{
		`{{ randAlphaNum 9 }}`, `{{ tpl .Values.a . }}`, `{{ htpasswd "a" "b" | quote }}`, `{{ (genCA "a" 9).Cert | b64enc }}`,
	} {
		c := chartWith(template, map[string]any{"a": "{{ uuidv4 }}"})
		c.Helm.AddDependency(&helmchart.Chart{
			Metadata:  &helmchart.Metadata{APIVersion: "v2", Name: "child", Version: "1.0.0"},
			Templates: []*helmchart.File{{Name: "templates/c.yaml", Data: []byte("same: {{ .Values.x }}-{{ .Release.Name }}\n")}},
			Values:    map[string]any{"x": "y"},
		})
		in := Input{Release: "r", Namespace: "n", Values: map[string]any{"child": map[string]any{"x": "z"}}}
		first, second, err := c.RenderTwice(context.Background(), in)
		if err != nil || second == nil {
			t.Fatalf("%s: %v, %v", template, second, err)
		}
		alone, err := c.Render(context.Background(), in)
		if err != nil {
			t.Fatal(err)
		}
		for _, out := range []*Rendered{first, second} {
			if len(out.Documents) != 2 || out.Documents[0] != alone.Documents[0] && out.Documents[1] != alone.Documents[1] {
				t.Errorf("%s: rendered\n%s\nwant like\n%s", template, out.Manifest, alone.Manifest)
			}
		}
		if second.Manifest == first.Manifest {
			t.Errorf("%s: rendered again the same: %s", template, first.Manifest)
		}
	}
}
