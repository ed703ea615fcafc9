package testcharts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryChartIsEmbeddedAndSaysWhatItShows(t *testing.T) {
	found, err := filepath.Glob("*/Chart.yaml")
	if err != nil || len(found) != len(Names()) {
		t.Errorf("there are %d charts (%v), embedded are %d: %v", len(found), err, len(Names()), Names())
	}
	for _, name := range Names() {
		dir := Dir(t, name)
		text, err := os.ReadFile(filepath.Join(dir, "Chart.yaml"))
		if err != nil || !strings.Contains(string(text), "\ndescription: ") {
			t.Errorf("%s doesn't say what it shows: %v", name, err)
		}
		if helpers, err := filepath.Glob(filepath.Join(name, "templates", "_*")); err != nil || len(helpers) > 0 {
			if copied, err := filepath.Glob(filepath.Join(dir, "templates", "_*")); err != nil || len(copied) != len(helpers) {
				t.Errorf("%s has %v, its copy %v (%v)", name, helpers, copied, err)
			}
		}
	}
}
