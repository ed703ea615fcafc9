package chart

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	helmchart "helm.sh/helm/v3/pkg/chart"
)

// load reads a chart of the given files.
func load(t *testing.T, files map[string]string) *Chart {
	t.Helper()
	c, err := Load(context.Background(), chartDir(t, files), LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// render renders a chart of the given files.
func render(t *testing.T, files map[string]string, in Input) (*Rendered, error) {
	t.Helper()
	if in.Release == "" {
		in.Release = "shop"
	}
	return load(t, files).Render(context.Background(), in)
}

func TestRenderOrdersAsHelm(t *testing.T) {
	doc := func(kind, name string) string { return "kind: " + kind + "\nmetadata: {name: " + name + "}\n" }
	hook := func(kind, name, annotations string) string {
		return "kind: " + kind + "\nmetadata:\n  name: " + name + "\n  annotations: {" + annotations + "}\n"
	}
	run{chart: chartDir(t, map[string]string{
		"templates/z.yaml":          doc("Zebra", "z") + "---\n" + doc("Ant", "a") + "---\n" + doc("Deployment", "d") + "---\n\n---\n# only a comment\n",
		"templates/a.yaml":          doc("Service", "s2") + "--- # comment\n" + doc("Namespace", "n") + "---\r\n" + doc("Service", "s1"),
		"templates/sub/b.yaml":      doc("ConfigMap", "c") + "   \n---   \n" + doc("Secret", "s"),
		"templates/blank.yaml":      "{{ if false }}x{{ end }}\n  \n",
		"templates/_partial.yaml":   "not rendered",
		"templates/text.txt":        doc("ConfigMap", "from-txt"),
		"templates/list.yaml":       "kind: List\nitems: []\n",
		"templates/hooks.yaml":      hook("Job", "h1", "helm.sh/hook: 'post-install, PRE-UPGRADE', helm.sh/hook-weight: '5'") + "---\n" + hook("ConfigMap", "h2", "helm.sh/hook: post-install, helm.sh/hook-weight: '-5', helm.sh/hook-delete-policy: 'hook-succeeded, Before-Hook-Creation', helm.sh/hook-output-log-policy: hook-failed") + "---\n" + hook("Job", "h0", "helm.sh/hook: test-success, helm.sh/hook-weight: x"),
		"templates/unknown.yaml":    hook("Job", "u", "helm.sh/hook: 'post-install,crd-install'"),
		"templates/annotated.yaml":  hook("Job", "not-a-hook", "a: b, n: '1'"),
		"templates/sub/NOTES.txt":   "not these",
		"templates/NOTES.txt":       "notes",
		"templates/numbers.yaml":    hook("Job", "number", "helm.sh/hook: test, helm.sh/hook-weight: 3, on: true"),
		"templates/unseparated.txt": "---kind: X",
	})}.compare(t, nil)
}

func TestRenderMakesHooks(t *testing.T) {
	r, err := render(t, map[string]string{"templates/h.yaml": `
kind: Job
metadata:
  name: a
  annotations:
    helm.sh/hook: "post-install, PRE-UPGRADE"
    helm.sh/hook-weight: "-3"
    helm.sh/hook-delete-policy: "hook-succeeded, Before-Hook-Creation"
    helm.sh/hook-output-log-policy: hook-failed
---
kind: Job
metadata: {name: b, annotations: {helm.sh/hook: "test,wrong"}}
`}, Input{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(r.Hooks)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"name":"a"`, `"kind":"Job"`, `"path":"probe/templates/h.yaml"`, `"events":["post-install","pre-upgrade"]`, `"weight":-3`,
		`"delete_policies":["hook-succeeded","before-hook-creation"]`, `"output_log_policies":["hook-failed"]`} {
		if !strings.Contains(string(got), want) {
			t.Errorf("hooks are %s, want %s", got, want)
		}
	}
	if len(r.Hooks) != 1 || r.Manifest != "" {
		t.Errorf("got %d hooks and the manifest %q", len(r.Hooks), r.Manifest)
	}
	if want := `probe/templates/h.yaml: Job/b is left out: "test,wrong" is not a hook event`; len(r.Warnings) != 1 || r.Warnings[0] != want {
		t.Errorf("warnings are %q, want %q", r.Warnings, want)
	}
}

func TestHooksMayHaveTheWeightOfOtherObjects(t *testing.T) {
	for annotations, want := range map[string]int{
		`helm.sh/hook-weight: "3"`:                                               3,
		`helm.sh/hook-weight: "3", werf.io/weight: "4"`:                          4,
		`helm.sh/hook-weight: "3", werf.io/weight: "4", deployer.io/weight: "5"`: 5,
		`werf.io/weight: x, helm.sh/hook-weight: "3"`:                            0,
	} {
		r, err := render(t, map[string]string{"templates/h.yaml": "kind: Job\nmetadata: {name: a, annotations: {helm.sh/hook: test, " + annotations + "}}\n"}, Input{})
		if err != nil || len(r.Hooks) != 1 {
			t.Fatalf("%s: %v, %v", annotations, r, err)
		}
		if r.Hooks[0].Weight != want {
			t.Errorf("%s: weight %d, want %d", annotations, r.Hooks[0].Weight, want)
		}
	}
}

func TestRenderTellsAllBadDocumentsAndShowsThem(t *testing.T) {
	r, err := render(t, map[string]string{
		"templates/a.yaml": "kind: A\n---\nkind: B\nspec:\n  bad: [\n",
		"templates/b.yaml": "\n\nkind: C\nmetadata: {annotations: [x]}\n",
		"templates/c.yaml": "kind: D\n",
	}, Input{})
	var bad *DocumentError
	if !errors.As(err, &bad) {
		t.Fatalf("error is %v", err)
	}
	for _, want := range []string{"probe/templates/a.yaml: line 5 of what it rendered: ", "probe/templates/b.yaml: the document at line 3 of what it rendered has array where Helm takes map[string]string: metadata.annotations"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
	if r == nil || !strings.Contains(r.Manifest, "bad: [") || !strings.Contains(r.Manifest, "kind: D") {
		t.Errorf("there is nothing to look at: %v", r)
	}
}

func TestRenderLeavesTheChartAsItWas(t *testing.T) {
	c, err := Load(context.Background(), filepath.Join(testcharts, "subcharts"), LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	before := tree(c.Helm)
	values := map[string]any{"database": map[string]any{"enabled": false}, "tags": map[string]any{"fast": false}}
	off := Input{Release: "shop", Values: values}
	first, err := c.Render(context.Background(), off)
	if err != nil {
		t.Fatal(err)
	}
	if got := tree(first.Chart); strings.Contains(got, "charts/") {
		t.Errorf("the chart as rendered is %s", got)
	}
	if after := tree(c.Helm); after != before {
		t.Errorf("the chart was\n%s\nis\n%s", before, after)
	}
	if text, _ := json.Marshal(values); string(text) != `{"database":{"enabled":false},"tags":{"fast":false}}` {
		t.Errorf("the values became %s", text)
	}
	on, err := c.Render(context.Background(), Input{Release: "shop", Values: map[string]any{"sessions": map[string]any{"enabled": true}}})
	if err != nil || !strings.Contains(on.Manifest, "shop-database") || !strings.Contains(on.Manifest, "shop-sessions") {
		t.Errorf("rendered again with other values: %v\n%s", err, on.Manifest)
	}
	again, err := c.Render(context.Background(), off)
	if err != nil || again.Manifest != first.Manifest {
		t.Errorf("rendered again: %v\n%s\nwant\n%s", err, again.Manifest, first.Manifest)
	}
}

// tree writes down what rendering may change in a chart.
func tree(c *helmchart.Chart) string {
	text, err := json.Marshal([]any{c.Metadata, c.Values})
	if err != nil {
		return err.Error()
	}
	out := c.ChartFullPath() + string(text)
	for _, d := range c.Dependencies() {
		out += "\n" + tree(d)
	}
	return out
}

func TestRenderNotes(t *testing.T) {
	c, err := Load(context.Background(), filepath.Join(testcharts, "subcharts"), LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for subcharts, want := range map[bool]string{
		false: "shop runs in north\n",
		true:  "The database has 2Gi\n\nshop runs in north\n",
	} {
		r, err := c.Render(context.Background(), Input{Release: "shop", SubchartNotes: subcharts})
		if err != nil || r.Notes != want {
			t.Errorf("notes are %q, %v; want %q", r.Notes, err, want)
		}
	}
}

func TestRenderChecksTheSchema(t *testing.T) {
	c, err := Load(context.Background(), filepath.Join(testcharts, "schema"), LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	in := Input{Release: "shop", Values: map[string]any{"replicas": 11, "tier": "tin", "extra": 1}}
	_, err = c.Render(context.Background(), in)
	var schema *SchemaError
	if !errors.As(err, &schema) || schema.Hint() == "" {
		t.Fatalf("error is %v", err)
	}
	for _, want := range []string{"/replicas", "/tier", "extra", "schema:"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %s:\n%v", want, err)
		}
	}
	in.SkipSchema = true
	if r, err := c.Render(context.Background(), in); err != nil || !strings.Contains(r.Manifest, "tier: tin") {
		t.Errorf("with SkipSchema: %v", err)
	}
}

func TestRenderTellsWhereTemplatesFail(t *testing.T) {
	helpers := "\n\n{{- define \"deep\" -}}{{ .Values.a.b.c }}{{- end -}}\n{{- define \"middle\" -}}\n{{ include \"deep\" . }}{{- end -}}"
	for name, c := range map[string]struct{ template, want string }{
		"deep": {`{{ include "middle" . }}`,
			`rendering chart probe: probe/templates/_helpers.tpl:3:31: in <.Values.a.b.c>: nil pointer evaluating interface {}.b (from probe/templates/t.yaml:1:3, probe/templates/_helpers.tpl:5:3)`},
		"required": {"\n{{ required \"set image.tag: please\" .Values.tag }}",
			`rendering chart probe: execution error at (probe/templates/t.yaml:2:3): set image.tag: please`},
		"fail":     {`{{ fail "no: way" }}`, `rendering chart probe: execution error at (probe/templates/t.yaml:1:3): no: way`},
		"syntax":   {"a\n{{ if }}", `rendering chart probe: parse error at (probe/templates/t.yaml:2): missing value for if`},
		"function": {"{{ nosuch . }}", `rendering chart probe: parse error at (probe/templates/t.yaml:1): function "nosuch" not defined`},
		"tpl":      {`{{ tpl "{{ .x.y.z }}" (dict "x" (dict "y" 1)) }}`, `z in type int`},
		"index":    {`{{ index .Values "l" 3 }}`, `probe/templates/t.yaml:1:3: in <index .Values "l" 3>: error calling index: `},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render(t, map[string]string{"templates/t.yaml": c.template, "templates/_helpers.tpl": helpers}, Input{})
			var e *TemplateError
			if !errors.As(err, &e) || e.Chart != "probe" {
				t.Fatalf("error is %#v", err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is\n%v, want\n%s", err, c.want)
			}
		})
	}
}

func TestRenderRefusesReleaseNames(t *testing.T) {
	c := load(t, nil)
	for _, name := range []string{"", "Upper", "under_score", strings.Repeat("a", 54)} {
		if _, err := c.Render(context.Background(), Input{Release: name}); err == nil {
			t.Errorf("%q is taken", name)
		}
	}
}

func TestRenderTellsTheRevision(t *testing.T) {
	files := map[string]string{"templates/t.yaml": "kind: R{{ .Release.Revision }} {{ .Release.IsInstall }} {{ .Release.IsUpgrade }}"}
	for want, in := range map[string]Input{
		"kind: R1 true false":  {},
		"kind: R12 false true": {Revision: 12, Upgrade: true},
	} {
		if r, err := render(t, files, in); err != nil || !strings.Contains(r.Manifest, want) {
			t.Errorf("manifest is %v, %v; want %s", r, err, want)
		}
	}
}

func TestPostRenderer(t *testing.T) {
	files := map[string]string{"templates/t.yaml": "kind: A", "templates/h.yaml": "kind: Job\nmetadata: {name: h, annotations: {helm.sh/hook: test}}"}
	r, err := render(t, files, Input{PostRenderer: []string{"sh", "-c", `cat; echo "kind: $0"`, "B"}})
	if err != nil || r.Manifest != "---\n# Source: probe/templates/t.yaml\nkind: A\nkind: B\n" || len(r.Hooks) != 1 {
		t.Errorf("manifest is %q, %v", r.Manifest, err)
	}
	_, err = render(t, files, Input{PostRenderer: []string{"sh", "-c", "echo broken >&2; exit 3"}})
	var post *PostRenderError
	if !errors.As(err, &post) || err.Error() != "post-renderer sh -c echo broken >&2; exit 3: exit status 3\nbroken" {
		t.Errorf("error is %v", err)
	}
	if _, err = render(t, files, Input{PostRenderer: []string{"./nosuchprogram"}}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of a program that isn't there: %v", err)
	}
	r, err = render(t, files, Input{PostRenderer: []string{"true"}})
	if err != nil || len(r.Warnings) != 1 {
		t.Errorf("of empty output: %q, %v", r.Warnings, err)
	}
}

func TestPostRendererEndsWithItsContext(t *testing.T) {
	c := load(t, map[string]string{"templates/t.yaml": "kind: A"})
	started := filepath.Join(t.TempDir(), "started")
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(started); err == nil {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	began := time.Now()
	_, err := c.Render(ctx, Input{Release: "a", PostRenderer: []string{"sh", "-c", "touch " + started + "; exec sleep 60"}})
	if !errors.Is(err, context.Canceled) || time.Since(began) > 30*time.Second {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}

func TestCRDsAreThoseOfSubchartsToo(t *testing.T) {
	crd := func(name string) string {
		return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + name + "}\n"
	}
	c := load(t, map[string]string{
		"crds/b.yaml":                crd("b") + "---\n" + crd("c"),
		"crds/a.yml":                 crd("a"),
		"crds/readme.md":             "{{ not yaml",
		"charts/one/Chart.yaml":      "apiVersion: v2\nname: one\nversion: 1.0.0\n",
		"charts/one/crds/x.json":     `{"apiVersion": "v1", "kind": "CustomResourceDefinition", "metadata": {"name": "x"}}`,
		"charts/one/templates/t.txt": "",
	})
	got, _, err := CRDs(c.Helm)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, m := range got {
		list = append(list, m.Source+"="+m.Object.GetName())
	}
	want := "probe/crds/a.yml=a probe/crds/b.yaml=b probe/crds/b.yaml=c probe/charts/one/crds/x.json=x"
	if strings.Join(list, " ") != want {
		t.Errorf("got %s, want %s", list, want)
	}
}

func BenchmarkRenderOfAThousandObjects(b *testing.B) {
	dir := b.TempDir()
	for name, text := range map[string]string{
		"Chart.yaml":       "apiVersion: v2\nname: big\nversion: 1.0.0\n",
		"templates/t.yaml": "{{ range until 1000 }}---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: d{{ . }}\nspec:\n  replicas: 1\n  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b, env: [{name: a, value: b}]}]}}\n{{ end }}",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	c, err := Load(b.Context(), dir, LoadOptions{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := c.Render(b.Context(), Input{Release: "big"}); err != nil {
			b.Fatal(err)
		}
	}
}
