package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// commandNames are the names of all commands that help lists, groups among them.
func commandNames(commands []*command, path ...string) []string {
	var out []string
	for _, c := range commands {
		words := append(slices.Clone(path), c.name)
		out = append(out, strings.Join(words, " "))
		out = append(out, commandNames(c.commands, words...)...)
	}
	return out
}

// A release has a manual page for each command, and none for what isn't one. No line of help is
// taken for a request to the formatter.
func TestManualPageOfEachCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if out, err := exec.Command("sh", "../../scripts/man.sh", dir, "deployer").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := map[string]bool{}
	for _, name := range commandNames(newCommands(testEnv(t, "deployer"))) {
		want["deployer-"+strings.ReplaceAll(name, " ", "-")+".1"] = true
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		name := filepath.Base(page)
		if !want[name] {
			t.Errorf("%s: there is no such command", name)
		}
		delete(want, name)
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		checkManualPage(t, name, string(data))
	}
	for name := range want {
		t.Errorf("there is no page %s", name)
	}
	formatManualPages(t, pages)
}

// TestManualPagesThatFail: a page that can't be written fails the release, in place of being empty.
func TestManualPagesThatFail(t *testing.T) {
	t.Parallel()
	for program, works := range map[string]bool{"echo": true, "false": false, "./no/such/program": false} {
		if out, err := exec.Command("sh", "../../scripts/man.sh", t.TempDir(), program).CombinedOutput(); (err == nil) != works {
			t.Errorf("%s: %v\n%s", program, err, out)
		}
	}
}

// checkManualPage checks that a page has its parts, and no other requests and characters that
// a formatter or a terminal would obey.
func checkManualPage(t *testing.T, name, page string) {
	t.Helper()
	var requests []string
	for line := range strings.Lines(page) {
		if line[0] == '.' || line[0] == '\'' {
			requests = append(requests, strings.Fields(line)[0])
		}
		if i := strings.IndexFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return r < ' ' || r == 0x7f }); i >= 0 {
			t.Errorf("%s: a control character in %q", name, line)
		}
	}
	if got := strings.Join(requests, " "); got != ".TH .SH .SH .nf .fi" {
		t.Errorf("%s: the requests are %s", name, got)
	}
	if !strings.Contains(page, "\nUsage: deployer ") || !strings.HasSuffix(page, "\n.fi\n") {
		t.Errorf("%s is not a whole page:\n%s", name, page)
	}
}

// formatManualPages lets groff, where there is one, warn of what it doesn't understand.
func formatManualPages(t *testing.T, pages []string) {
	t.Helper()
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Log("no groff here: the pages were not formatted")
		return
	}
	if out, err := exec.Command(groff, append([]string{"-man", "-Tutf8", "-ww", "-z"}, pages...)...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("groff: %v\n%s", err, out)
	}
}
