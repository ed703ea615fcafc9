package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var testcharts = filepath.Join("..", "testcharts")

func TestTemplateIsHelmsForTestcharts(t *testing.T) {
	charts := chartsIn(t, testcharts)
	if len(charts) < 8 {
		t.Fatalf("testcharts has %d charts: %v", len(charts), charts)
	}
	for _, path := range charts {
		t.Run(filepath.Base(path), func(t *testing.T) {
			for _, r := range []run{{}, {upgrade: true, crds: true, noHooks: true}} {
				r.chart = path
				rendered := r.compare(t, nil)
				parsesAsHelm(t, rendered)
				for _, h := range rendered.Hooks {
					if objects, err := ParseHook(h); err != nil || len(objects) != 1 || objects[0].Source != h.Path {
						t.Errorf("ParseHook(%s) = %v, %v", h.Path, objects, err)
					}
				}
				if !strings.Contains(rendered.Chart.Metadata.Description, " ") {
					t.Error("its Chart.yaml doesn't say what it shows")
				}
			}
		})
	}
}

func TestTemplateIsHelmsWithFlags(t *testing.T) {
	subcharts := func(values ...string) []ValuesSource {
		var out []ValuesSource
		for _, v := range values {
			out = append(out, ValuesSource{Set, v})
		}
		return out
	}
	for name, r := range map[string]run{
		"condition off":         {chart: "subcharts", sources: subcharts("database.enabled=false")},
		"alias on":              {chart: "subcharts", sources: subcharts("sessions.enabled=true")},
		"tags off, alias on":    {chart: "subcharts", sources: subcharts("tags.fast=false,sessions.enabled=true")},
		"everything off":        {chart: "subcharts", sources: subcharts("tags.fast=false,database.enabled=false")},
		"global value":          {chart: "subcharts", sources: subcharts("global.region=south")},
		"imports overridden":    {chart: "subcharts", sources: subcharts("db.host=elsewhere,ttl=5,database.connection.host=own")},
		"default set to null":   {chart: "subcharts", sources: subcharts("global.region=null,database.storage=null")},
		"show-only":             {chart: "hooks", showOnly: []string{"templates/upgrade.yaml"}},
		"show-only with globs":  {chart: "everything", showOnly: []string{"templates/[cr]*.yaml", "templates/network.yaml"}},
		"show-only of subchart": {chart: "subcharts", showOnly: []string{"charts/*/templates/*.yaml"}},
		"skip tests":            {chart: "hooks", skipTests: true},
		"post-renderer":         {chart: "everything", post: []string{"sed", "s/pause/stop/"}},
		"post-renderer and crd": {chart: "crds", crds: true, post: []string{"sed", "-e", "s/widgets/gizmos/"}},
		"failing hook":          {chart: "rename", sources: subcharts("hook.fail=true", "containers={a,b}")},
	} {
		t.Run(name, func(t *testing.T) {
			r.chart = filepath.Join(testcharts, r.chart)
			r.compare(t, nil)
		})
	}
}

func TestShowOnlyWithoutMatchFailsAsInHelm(t *testing.T) {
	for _, pattern := range []string{"templates/none.yaml", "configmap.yaml", "[", "web/templates/*.yaml"} {
		r := run{chart: filepath.Join(testcharts, "web"), showOnly: []string{pattern}}
		if _, err := r.helm(t); err == nil {
			t.Errorf("helm finds %s", pattern)
		}
		_, _, err := r.ours(t)
		if want := "could not find template " + pattern + " in chart"; err == nil || err.Error() != want {
			t.Errorf("--show-only %s: %v, want %s", pattern, err, want)
		}
	}
}

func TestOutputDirIsHelms(t *testing.T) {
	for _, r := range []run{
		{chart: filepath.Join(testcharts, "hooks")},
		{chart: filepath.Join(testcharts, "subcharts")},
		{chart: filepath.Join(testcharts, "crds"), crds: true},
		{chart: filepath.Join(testcharts, "crds"), crds: true, byRelease: true},
		{chart: filepath.Join(testcharts, "hooks"), byRelease: true, skipTests: true},
	} {
		r.outputDir = filepath.Join(t.TempDir(), "out")
		want, err := r.helm(t)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := r.ours(t)
		if err != nil {
			t.Fatal(err)
		}
		if got.Stdout != want {
			t.Errorf("--output-dir prints\n%s\nwant\n%s", got.Stdout, want)
		}
		files := 0
		err = filepath.WalkDir(r.outputDir, func(_ string, d os.DirEntry, err error) error {
			if !d.IsDir() {
				files++
			}
			return err
		})
		if err != nil || files != len(got.Files) || files == 0 {
			t.Errorf("helm wrote %d files (%v), ours has %d", files, err, len(got.Files))
		}
		for _, f := range got.Files {
			if data, err := os.ReadFile(f.Path); err != nil || string(data) != f.Text {
				t.Errorf("%s (%v):\n%s\nwant\n%s", f.Path, err, f.Text, data)
			}
		}
	}
}
