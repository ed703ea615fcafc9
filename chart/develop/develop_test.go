package develop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/chart/loader"

	"deployer/chart"
)

// chartDir writes a chart, whose Chart.yaml begins as every one does.
func chartDir(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if filepath.Base(name) == "Chart.yaml" {
			text = "apiVersion: v2\n" + text
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// archive packs a chart into charts/ of another.
func archive(t *testing.T, parent, chartYAML string) {
	t.Helper()
	if _, err := Package(chartDir(t, map[string]string{"Chart.yaml": chartYAML}), PackageOptions{Destination: filepath.Join(parent, "charts")}); err != nil {
		t.Fatal(err)
	}
}

func TestDependencies(t *testing.T) {
	dir := chartDir(t, map[string]string{
		"Chart.yaml": `name: web
version: 1.0.0
dependencies:
- {name: packed, version: ^1}
- {name: old, version: ^2, repository: "https://example.com"}
- {name: folder, version: 0.1.0}
- {name: absent, version: 0.1.0}
- {name: twice, version: 0.1.0}
`,
		"charts/folder/Chart.yaml":   "name: folder\nversion: 0.1.0\n",
		"charts/stranger/Chart.yaml": "name: stranger\nversion: 0.1.0\n",
	})
	archive(t, dir, "name: packed\nversion: 1.2.3\n")
	archive(t, dir, "name: old\nversion: 1.9.0\n")
	archive(t, dir, "name: twice\nversion: 0.1.0\n")
	archive(t, dir, "name: twice\nversion: 0.2.0\n")
	found, warnings, err := Dependencies(dir)
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]string{}
	for _, d := range found {
		have[d.Name] = d.Status
	}
	want := map[string]string{"packed": "ok", "old": "wrong version", "folder": "unpacked", "absent": "missing",
		"twice": "too many matches"}
	if !reflect.DeepEqual(have, want) {
		t.Errorf("got %v, want %v", have, want)
	}
	if want := []string{`"` + filepath.Join(dir, "charts", "stranger") + `" is not in Chart.yaml.`}; !slices.Equal(warnings, want) {
		t.Errorf("got the warnings %q, want %q", warnings, want)
	}
}

func TestPackageRefuses(t *testing.T) {
	whole := map[string]string{"Chart.yaml": "name: web\nversion: 1.0.0\n"}
	if _, err := Package(chartDir(t, whole), PackageOptions{Version: "banana", Destination: t.TempDir()}); err == nil {
		t.Error("a version that is none was taken")
	}
	lacking := map[string]string{"Chart.yaml": "name: web\nversion: 1.0.0\ndependencies: [{name: sub, version: 0.1.0}]\n"}
	var missing *chart.MissingDependenciesError
	if _, err := Package(chartDir(t, lacking), PackageOptions{Destination: t.TempDir()}); !errors.As(err, &missing) || !slices.Equal(missing.Names, []string{"sub"}) {
		t.Errorf("a chart that lacks a dependency: %v", err)
	}
}

func TestPackageChangesTheArchiveOnly(t *testing.T) {
	dir := chartDir(t, map[string]string{"Chart.yaml": "name: web\nversion: 1.0.0\n"})
	path, err := Package(dir, PackageOptions{Version: "2.0.0", AppVersion: "9", Destination: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	packed, err := loader.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if m := packed.Metadata; filepath.Base(path) != "web-2.0.0.tgz" || m.Version != "2.0.0" || m.AppVersion != "9" {
		t.Errorf("%s has version %s, app version %s", path, m.Version, m.AppVersion)
	}
	if source, err := loader.Load(dir); err != nil || source.Metadata.Version != "1.0.0" {
		t.Errorf("the directory was changed: %v, %v", source, err)
	}
}

// What YAML refuses may be a password that isn't in quotes.
func TestLintTellsNoValues(t *testing.T) {
	dir := chartDir(t, map[string]string{
		"Chart.yaml":            "name: web\nversion: 1.0.0\n",
		"templates/secret.yaml": "stringData:\n  password: {{ .Values.password }}\n",
	})
	report, err := Lint(context.Background(), dir, map[string]any{"password": "*hunter2"}, LintOptions{})
	messages := fmt.Sprint(report.Messages)
	if err != nil || !strings.Contains(messages, "unknown anchor (hidden) referenced") || strings.Contains(messages, "hunter2") {
		t.Errorf("error %v, messages\n%s", err, messages)
	}
}

// TestLintEndsWithALimit, although a template of the chart doesn't end.
func TestLintEndsWithALimit(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	dir := chartDir(t, map[string]string{"Chart.yaml": "name: c\nversion: 1.0.0\n", "templates/endless.yaml": "{{ range 100000000 }}{{ end }}"})
	if _, err := Lint(ctx, dir, nil, LintOptions{}); !errors.As(err, new(*chart.LimitError)) {
		t.Errorf("Lint = %v", err)
	}
}
