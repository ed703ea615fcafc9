package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"deployer/internal/helmtest"
	"deployer/testcharts"
)

var updateGuides = flag.Bool("update", false, "rewrite what the guides show from what the program does")

// The session that the README draws.
const (
	session = "../../docs/guides/failed-release.md"
	drawing = "../../docs/session.svg"
)

// TestGuides does what the guides and the pages beside them say in their blocks "console",
// and compares what they show with what is seen. Each has a namespace, which it calls prod,
// and a directory with the charts of testcharts and the files that it shows: the blocks that
// begin with "# NAME.yaml" or "# NAME.sh". A line "..." stands for any lines.
func TestGuides(t *testing.T) {
	t.Parallel()
	var files []string
	for _, pattern := range []string{"../../docs/guides/*.md", "../../docs/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no pages %s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !console.Match(data) {
			continue
		}
		name, _ := strings.CutPrefix(strings.TrimSuffix(file, ".md"), "../../docs/")
		t.Run(strings.TrimPrefix(name, "guides/"), func(t *testing.T) {
			reader := newReader(newWorld(t), string(data))
			text := console.ReplaceAllStringFunc(string(data), reader.follow)
			if *updateGuides && !t.Failed() {
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

var (
	console  = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")
	fileText = regexp.MustCompile("(?ms)^```(?:yaml|sh)\n# (\\S+\\.(?:yaml|sh))\n(.*?)^```$")
)

// A reader does what a guide says.
type reader struct {
	*world
	dir  string
	code string // the exit code of the last command
}

func newReader(w *world, guide string) *reader {
	w.Helper()
	r := &reader{world: w, dir: w.TempDir(), code: "0"}
	for _, name := range testcharts.Names() {
		if err := os.Symlink(testcharts.Dir(w.T, name), filepath.Join(r.dir, name)); err != nil {
			w.Fatal(err)
		}
	}
	for _, m := range fileText.FindAllStringSubmatch(guide, -1) {
		r.write(m[1], strings.ReplaceAll(m[2], "namespace: prod", "namespace: "+w.ns))
	}
	devcluster, err := filepath.Abs("../../bin/devcluster")
	if err != nil {
		w.Fatal(err)
	}
	if _, err := os.Stat(devcluster); err != nil {
		w.Skip("guides call kubectl, which bin/devcluster has: make devcluster")
	}
	r.write("bin/kubectl", "#!/bin/sh\nexec "+devcluster+" kubectl \"$@\"\n")
	programs := map[string]string{"deployer": deployerBinary, "helm": helmtest.Helm3(w)}
	for name, source := range map[string]string{"age": "./testdata/age", "age-keygen": "filippo.io/age/cmd/age-keygen"} {
		if strings.Contains(guide, "$ "+name+" ") {
			programs[name] = build(w, name, source)
		}
	}
	for name, program := range programs {
		if err := os.Symlink(program, filepath.Join(r.dir, "bin", name)); err != nil {
			w.Fatal(err)
		}
	}
	return r
}

// build builds a program that a guide calls from its package.
func build(w *world, name, source string) string {
	w.Helper()
	path := filepath.Join(w.TempDir(), name)
	if out, err := exec.CommandContext(w.Context(), "go", "build", "-o", path, source).CombinedOutput(); err != nil {
		w.Fatalf("building %s: %v\n%s", name, err, out)
	}
	return path
}

func (r *reader) write(name, text string) {
	r.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		r.Fatal(err)
	}
}

// follow runs the commands of a block, and returns the block with what was seen where
// that isn't what it shows.
func (r *reader) follow(block string) string {
	body := strings.TrimSuffix(strings.TrimPrefix(block, "```console\n"), "```")
	out := "```console\n"
	for _, step := range strings.Split("\n"+body, "\n$ ")[1:] {
		command, shown, _ := strings.Cut(step, "\n")
		for strings.HasSuffix(command, "\\") {
			more, rest, _ := strings.Cut(shown, "\n")
			command, shown = command+"\n"+more, rest
		}
		shown = strings.TrimRight(shown, "\n")
		seen := strings.TrimRight(r.run(command), "\n")
		if (shown == "" || shown == "...") && r.code != "0" {
			r.Errorf("$ %s\nthe guide doesn't show that it fails:\n%s", command, seen)
		}
		if !matches(shown, seen) {
			if !*updateGuides {
				r.Errorf("$ %s\nthe guide shows\n%s\nbut it says\n%s", command, shown, seen)
			}
			shown = seen
		}
		out += "$ " + command + "\n"
		if shown != "" {
			out += shown + "\n"
		}
		out += "\n"
	}
	return strings.TrimRight(out, "\n") + "\n```"
}

// run runs a command as a reader of the guide would.
func (r *reader) run(command string) string {
	r.Helper()
	if command == "echo $?" {
		return r.code
	}
	if _, err := exec.LookPath("ssh-keygen"); err != nil && strings.Contains(command, "ssh-keygen") {
		r.Skip("ssh-keygen isn't installed: this step and the rest of the page aren't run")
	}
	cmd, done := r.command("bash", "-c", "exec 2>&1\n"+command) // the shell of most readers
	cmd.Dir = r.dir
	cmd.Env = append(cmd.Env, "HOME="+r.dir, "PATH="+filepath.Join(r.dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	result := done(cmd.Run())
	r.code = string('0' + rune(result.code%10))
	return aligned(r.ofReaders(result.out))
}

// ofReaders is a text with the names of a reader's namespace and cluster in place of the tests' ones.
func (r *reader) ofReaders(text string) string {
	text = strings.NewReplacer(r.ns, "prod", "devcluster", "prod-eu").Replace(text)
	return testServer.ReplaceAllString(text, "https://k8s.example.com")
}

var testServer = regexp.MustCompile(`https://127\.0\.0\.1:\d+`)

// aligned is a text whose tables, rows of cells with tabs between them, are aligned again.
func aligned(text string) string {
	lines := strings.Split(text, "\n")
	for from := 0; from < len(lines); from++ {
		to := from
		var widths []int
		for ; to < len(lines) && strings.Contains(lines[to], "\t"); to++ {
			for i, cell := range strings.Split(lines[to], "\t") {
				if i == len(widths) {
					widths = append(widths, 0)
				}
				widths[i] = max(widths[i], len(strings.TrimSpace(cell)))
			}
		}
		for ; from < to; from++ {
			row := ""
			for i, cell := range strings.Split(lines[from], "\t") {
				row += fmt.Sprintf("%-*s   ", widths[i], strings.TrimSpace(cell))
			}
			lines[from] = strings.TrimRight(row, " ")
		}
	}
	return strings.Join(lines, "\n")
}

// matches reports whether a guide shows what was seen, whatever time it took, and under
// whatever random names.
func matches(shown, seen string) bool {
	pattern := "^"
	for line := range strings.Lines(unchanging(shown) + "\n") {
		if strings.TrimSpace(line) == "..." {
			pattern += `(?:.*\n)*?`
			continue
		}
		pattern += regexp.QuoteMeta(line)
	}
	return regexp.MustCompile(pattern + "$").MatchString(unchanging(seen) + "\n")
}

// unchanging is a text without what differs each time.
func unchanging(text string) string {
	for _, each := range changing {
		text = each.pattern.ReplaceAllString(text, each.by)
	}
	return text
}

var changing = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S* \+0000 UTC`), "TIME"},
	{regexp.MustCompile(`(Mon|Tue|Wed|Thu|Fri|Sat|Sun) (\w{3}) [ \d]\d \d\d:\d\d:\d\d \d{4}`), "TIME"},
	{regexp.MustCompile(`[\w.-]+, pid \d+`), "HOST, pid 1"},
	{regexp.MustCompile(`(?m)^\d\d:\d\d `), "00:00 "},
	{regexp.MustCompile(`(?m)^00:00 (problem|recovered|waiting|ready +[A-Z]|applied +[a-z]+ [A-Z]).*\n`), ""}, // how events come together is chance
	{regexp.MustCompile(`(?m)^   since .*\n`), ""},                                                            // what failed a second ago has no line
	{regexp.MustCompile(`\b(\d+m)?\d+(\.\d+)?m?s\b`), "1s"},
	{regexp.MustCompile(` · slowest \S+ \S+`), ""},
	{regexp.MustCompile(` 1s(,|$)`), "$1"}, // what took less than a second has no time
	{regexp.MustCompile(`\b(\w+(-[a-f0-9]{8,10})?)-[bcdfghjklmnpqrstvwxz2456789]{5}\b`), "POD"},
	{regexp.MustCompile(`node-\d+`), "node-0"},
	{regexp.MustCompile(`sha256:[0-9a-f]{8,}`), "sha256:..."},
	{regexp.MustCompile(`age1[0-9a-z]{58}`), "age1..."},
	{regexp.MustCompile(` *\n`), "\n"},
	{regexp.MustCompile(`(\S) {2,}`), "$1  "}, // a column is as wide as its longest time
}

// TestSessionIsDrawn holds the picture of the README to the text of the guide.
func TestSessionIsDrawn(t *testing.T) {
	data, err := os.ReadFile(session)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, m := range console.FindAllStringSubmatch(string(data), -1) {
		lines = append(lines, strings.Split(strings.TrimRight(m[1], "\n"), "\n")...)
		lines = append(lines, "")
	}
	want := draw(lines)
	if *updateGuides {
		if err := os.WriteFile(drawing, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(drawing)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Errorf("%s isn't what %s shows: make guides", drawing, session)
	}
	if _, err := exec.LookPath("xmllint"); err == nil {
		if out, err := exec.Command("xmllint", "--noout", drawing).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
}
