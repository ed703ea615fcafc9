package internal

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	fenced    = regexp.MustCompile("(?ms)^```.*?^```$")
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInSlug = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// Links in the documentation lead somewhere: to a file of the repository, and to a heading of it.
func TestLinksInDocumentation(t *testing.T) {
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "bin" || d.Name() == "testdata" || path != ".." && strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if filepath.Ext(path) == ".md" {
			checkLinks(t, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkLinks reports the links of a page that lead nowhere. Those to other sites aren't followed.
func checkLinks(t *testing.T, path string) {
	t.Helper()
	for _, m := range link.FindAllStringSubmatch(pageText(t, path), -1) {
		file, anchor, _ := strings.Cut(m[1], "#")
		if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
			continue
		}
		target := path
		if file != "" {
			target = filepath.Join(filepath.Dir(path), file)
		}
		if _, err := os.Stat(target); err != nil {
			t.Errorf("%s: there is no %s", path, m[1])
			continue
		}
		if anchor != "" && filepath.Ext(target) == ".md" && !anchors(pageText(t, target))[anchor] {
			t.Errorf("%s: %s has no heading #%s", path, file, anchor)
		}
	}
}

// pageText is a page without its examples.
func pageText(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return fenced.ReplaceAllString(string(data), "")
}

// anchors are the headings of a page as GitHub names them in links.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		out[strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return out
}
