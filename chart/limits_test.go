package chart

import (
	"context"
	"errors"
	"strings"
	"testing"

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
	c := templates(map[string]string{"endless.yaml": `{{ range 2000000000 }}{{ end }}`})
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
