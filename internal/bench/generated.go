package main

import (
	"context"
	"fmt"
	"os"
	"strings"
)

// What keeping generated values costs: an upgrade without a change of a chart with random passwords
// and certificates, beside one of a chart with the same Secrets written out. Helm writes the
// Secrets of the first one anew.
const (
	generatedObjects = 200
	generatedSecrets = 40
	keepGenerated    = "no-op with random values"
	writtenOut       = "no-op with the same written out"
)

var generatedTargets = []target{
	{keepGenerated, "seconds / written out", 1.1, 0, func(r *run, _, d measurement) float64 {
		return ratio(float64(median(r.find(writtenOut).deployer).wall), float64(d.wall))
	}},
	{keepGenerated, "writes of objects", 0, 0, func(_ *run, _, d measurement) float64 { return float64(d.asked.writes) }},
}

// measureGenerated measures what keeping generated values costs.
func measureGenerated(ctx context.Context, o options) ([]run, error) {
	r := run{title: fmt.Sprintf("%d objects and %d Secrets with random values, which are kept", generatedObjects, generatedSecrets), times: max(o.repeat, 5), targets: generatedTargets}
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	programs, err := programs(o, dir, "generated")
	if err != nil {
		return nil, err
	}
	for _, p := range programs {
		if err := p.prepare(ctx); err != nil {
			return nil, err
		}
		defer removeNamespace(ctx, p.namespace)
	}
	values := map[string]func(int) string{
		"random": func(int) string { return "{{ randAlphaNum 24 }}" },
		"fixed":  func(i int) string { return fmt.Sprintf("0123456789abcdefghij%04d", i) },
	}
	for name, value := range values {
		files := map[string]string{
			"Chart.yaml":             "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n",
			"templates/objects.yaml": objectsTemplate(generatedObjects),
			"templates/secrets.yaml": secretsTemplate(value),
		}
		if err := writeFiles(dir+"/"+name, files); err != nil {
			return nil, err
		}
		for _, p := range programs {
			if _, err := p.run(ctx, "install", name, dir+"/"+name, "--wait=false"); err != nil {
				return nil, err
			}
		}
	}
	// Both charts in turn, so that what else the machine does meets both, and one program after the other: after Helm's
	// writes the API server answers a list sooner, because it needn't wait for news from its store.
	r.rows = []row{{phase: phase{name: keepGenerated}}, {phase: phase{name: writtenOut}}}
	for _, p := range programs {
		for range r.times {
			for i, name := range []string{"random", "fixed"} {
				if err := p.awaitIdle(ctx); err != nil {
					return nil, err
				}
				m, err := p.run(ctx, "upgrade", name, dir+"/"+name, "--wait=false")
				if err != nil {
					return nil, err
				}
				r.rows[i].add(p.helm, m)
			}
		}
	}
	return []run{r}, r.report(os.Stdout)
}

// secretsTemplate is a template of Secrets, each with its value.
func secretsTemplate(value func(i int) string) string {
	var text strings.Builder
	for i := range generatedSecrets {
		fmt.Fprintf(&text, "---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: {{ .Release.Name }}-%d\nstringData:\n  password: %s\n", i, value(i))
	}
	return text.String()
}
