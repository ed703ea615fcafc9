package deployertest

import (
	"os"
	"path/filepath"
	"testing"
)

// RaceReports is the environment of a program under test, "GORACE=…", by which a
// program that was built with the race detector reports to files in a directory
// of the test. The test fails when there is any: of a program that is meant to
// fail, the exit code wouldn't tell.
// https://go.dev/doc/articles/race_detector#Options
func RaceReports(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() {
		for _, report := range readReports(dir) {
			t.Errorf("the program under test has a data race:\n%s", report)
		}
	})
	// By default a program waits for a second before it ends, for other goroutines' reports.
	return "GORACE=log_path=" + filepath.Join(dir, "race") + " atexit_sleep_ms=0"
}

func readReports(dir string) []string {
	files, _ := filepath.Glob(filepath.Join(dir, "race.*")) // the pattern is well-formed
	var out []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			text = []byte(err.Error())
		}
		out = append(out, string(text))
	}
	return out
}
