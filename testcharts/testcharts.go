// Package testcharts holds charts to test with, each small enough to read and
// saying in its Chart.yaml what it shows. They double as examples.
package testcharts

import (
	"embed"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

//go:embed all:crds all:everything all:hooks all:library all:rename all:schema all:subcharts all:web
var charts embed.FS

// Names lists the charts, sorted.
func Names() []string {
	entries, err := charts.ReadDir(".")
	if err != nil {
		panic(err) // what is embedded can be read
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Dir copies a chart to a directory of the test's own, where the test may
// change it, and returns its path, which ends in the chart's name.
func Dir(t testing.TB, name string) string {
	t.Helper()
	chart, err := fs.Sub(charts, name)
	if err != nil {
		t.Fatalf("test chart %s: %v", name, err)
	}
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, chart); err != nil {
		t.Fatalf("test chart %s: %v", name, err)
	}
	return dir
}
