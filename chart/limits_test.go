package chart

import (
	"context"
	"errors"
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
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	endless := map[string]string{"a.yaml": "a: 1\n", "b.yaml": `{{ range 200000000 }}{{ end }}`, "c.yaml": "c: 1\n"}
	_, err := templates(endless).Render(ctx, Input{Release: "r", Namespace: "n"})
	var limit *LimitError
	if !errors.As(err, &limit) || limit.Template != "c/templates/b.yaml" || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an endless range: Render = %v", err)
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
