package internal

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestVulncheckSaysWhatItHasNotChecked: a lint without the database of vulnerabilities succeeds and says that nothing
// was checked; one that requires it fails.
func TestVulncheckSaysWhatItHasNotChecked(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh")
	}
	broken := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(broken.Close)
	gone := httptest.NewServer(nil)
	gone.Close()
	// A database of the right form whose entries can't be read.
	half := t.TempDir()
	if err := os.MkdirAll(filepath.Join(half, "index"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(half, "index", "db.json"), []byte(`{"modified":"2026-01-01T00:00:00Z"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ database, says string }{
		"nobody answers":           {gone.URL, "can't be reached"},
		"there is something else":  {broken.URL, "can't be reached"},
		"the directory is missing": {"file:///no/such/directory", "there is no database in "},
		"it can't be read":         {"file://" + half, ""}, // by the tool, if it can be had
	} {
		for require, want := range map[string]int{"": 0, "require": 1} {
			cmd := exec.Command("sh", "../scripts/vulncheck.sh")
			cmd.Env = append(os.Environ(), "GOVULNDB="+c.database, "VULNCHECK="+require, "no_proxy=*")
			out, _ := cmd.CombinedOutput()
			text := string(out)
			if code := cmd.ProcessState.ExitCode(); code != want || !strings.Contains(text, "govulncheck: NOT CHECKED for known vulnerabilities: ") || !strings.Contains(text, c.says) {
				t.Errorf("%s, VULNCHECK=%q: want exit code %d and why nothing was checked, not %d:\n%s", name, require, want, code, text)
			}
		}
	}
}
