package chart

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	helmchart "helm.sh/helm/v3/pkg/chart"
)

// templates is a chart with those templates.
func templates(files map[string]string) *Chart {
	c := &helmchart.Chart{Metadata: &helmchart.Metadata{APIVersion: "v2", Name: "c", Version: "1.0.0"}}
	for name, text := range files {
		c.Templates = append(c.Templates, &helmchart.File{Name: "templates/" + name, Data: []byte(text)})
	}
	return &Chart{Helm: c}
}

// TestPlacesInErrorsAreThoseOfTheChart: the marks move nothing that anybody sees.
func TestPlacesInErrorsAreThoseOfTheChart(t *testing.T) {
	for text, want := range map[string]string{
		`a: {{ fail "no" }}`:                        "execution error at (c/templates/x.yaml:1:6): no",
		`{{ fail "no" }}`:                           "execution error at (c/templates/x.yaml:1:3): no",
		"\na: {{ fail \"no\" }}":                    "execution error at (c/templates/x.yaml:2:6): no",
		`{{ .Values.a.b.c }}`:                       "c/templates/x.yaml:1:",
		`{{ include "f" . }}`:                       "c/templates/_f.tpl:1:3",
		`{{ $_ := 1 }}{{ required "r" .Values.x }}`: "execution error at (c/templates/x.yaml:1:16): r",
	} {
		c := templates(map[string]string{"x.yaml": text, "_f.tpl": `{{ define "f" }}{{ fail "in f" }}{{ end }}`})
		_, err := c.Render(t.Context(), Input{Release: "r", Namespace: "n"})
		if text == `{{ include "f" . }}` {
			want = "in f"
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: Render = %v, want %q", text, err, want)
		}
	}
}

// TestOutputHasALimit, with the template that has the most of it.
func TestOutputHasALimit(t *testing.T) {
	c := templates(map[string]string{"a.yaml": "a: 1\n", "big.yaml": `{{ repeat 140000000 "x" }}`})
	_, err := c.Render(t.Context(), Input{Release: "r", Namespace: "n"})
	var limit *LimitError
	if !errors.As(err, &limit) || limit.Template != "c/templates/big.yaml" {
		t.Errorf("Render = %v", err)
	}
}

// TestRenderingEndsWithItsContext, although the engine knows of none.
func TestRenderingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := templates(map[string]string{"endless.yaml": `{{ range 20000000 }}{{ end }}`})
	done := make(chan error, 1)
	go func() {
		_, err := c.Render(ctx, Input{Release: "r", Namespace: "n"})
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Render = %v", err)
	}
}

// TestEndlessTemplatesAreNamed, although the engine doesn't tell which one it evaluates.
func TestEndlessTemplatesAreNamed(t *testing.T) {
	capabilities, err := capabilitiesOf(ServerInfo{})
	if err != nil {
		t.Fatal(err)
	}
	cluster, api := apiServer(t)
	in := Input{Release: "r", Namespace: "n", Lookup: Lookup{Cluster: cluster}}
	const endless = `{{ range 200000000 }}{{ end }}`
	for what, c := range map[string]struct {
		files map[string]string
		limit time.Duration // 2 s if zero
		want  string
	}{
		"a range": {files: map[string]string{"a.yaml": `{{ lookup "v1" "Secret" "store" "db" }}`, "b.yaml": endless, "c.yaml": "c: 1\n"}, want: "c/templates/b.yaml"},
		"where templates are included by their paths": {files: map[string]string{
			"a.yaml": "a: 1\n", "b.yaml": `{{ include "c/templates/a.yaml" . }}{{ include (print .Template.BasePath "/c.yaml") . }}` + endless, "c.yaml": "c: 1\n"}, want: "c/templates/b.yaml"},
		"too much memory": {files: map[string]string{"a.yaml": `{{ repeat 140000000 "x" }}`, "b.yaml": endless}, limit: time.Minute},
	} {
		if got := templates(c.files).slowTemplate(t.Context(), in, capabilities, cmp.Or(c.limit, 2*time.Second)); got != c.want {
			t.Errorf("%s: slowTemplate = %q, want %q", what, got, c.want)
		}
	}
	if len(api.asked) > 0 {
		t.Errorf("the cluster was asked for %v", api.asked)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	began := time.Now()
	if got := templates(map[string]string{"b.yaml": endless}).slowTemplate(ended, in, capabilities, time.Minute); got != "" || time.Since(began) > 30*time.Second {
		t.Errorf("once the caller has ended: slowTemplate = %q after %s", got, time.Since(began))
	}
	_, err = templates(map[string]string{"x.yaml": `{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`}).Render(t.Context(), Input{Release: "r", Namespace: "n"})
	if err == nil || !strings.Contains(err.Error(), "c/templates/x.yaml:1:19: ") || len(err.Error()) > 500 {
		t.Errorf("an endless include: Render = %v", err)
	}
	for what, c := range map[string]struct {
		files  map[string]string
		values map[string]any
		want   string
	}{
		"itself":               {files: map[string]string{"x.yaml": `{{ define "a" }}{{ if 1 }}{{ include "a" . }}{{ end }}{{ end }}{{ template "a" }}`}, want: "c/templates/x.yaml"},
		"a helper":             {files: map[string]string{"_a.tpl": `{{ define "a" }}{{ template "b" }}{{ end }}{{ define "b" }}{{ template "a" }}{{ end }}`, "x.yaml": `{{ include "a" . }}`}, want: "c/templates/x.yaml"},
		"a value":              {files: map[string]string{"x.yaml": `{{ tpl .Values.x . }}`}, values: map[string]any{"x": `{{ tpl .Values.x . }}`}, want: "c/templates/x.yaml"},
		"two of them":          {files: map[string]string{"_a.tpl": `{{ define "a" }}{{ template "a" }}{{ end }}`, "x.yaml": `{{ include "a" . }}`, "y.yaml": `{{ include "a" . }}`}},
		"none that is visible": {files: map[string]string{"x.yaml": `{{ include .Values.name . }}`}},
	} {
		c.files["other.yaml"] = `{{ include "plain" . }}{{ define "plain" }}a: 1{{ end }}`
		if got := templates(c.files).recursiveTemplate(Input{Values: c.values}); got != c.want {
			t.Errorf("%s: recursiveTemplate = %q, want %q", what, got, c.want)
		}
	}
}

// TestLookingForRecursionReadsValuesOnce, not once for each template.
func TestLookingForRecursionReadsValuesOnce(t *testing.T) {
	files := map[string]string{}
	for i := range 100 {
		files[fmt.Sprintf("%d.yaml", i)] = "a: 1\n"
	}
	c := templates(files)
	c.Helm.Values = map[string]any{"large": strings.Repeat("x ", 1<<19)}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c.recursiveTemplate(Input{})
	runtime.ReadMemStats(&after)
	if taken := (after.TotalAlloc - before.TotalAlloc) >> 20; taken > 1000 {
		t.Errorf("it takes %d MiB for values of 1 MiB", taken)
	}
}
