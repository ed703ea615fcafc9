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
		out, err := c.Render(context.Background(), in)
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
