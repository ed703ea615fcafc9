package internal

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

var (
	block = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$")
	// What a page shows as a file is there when its commands are run.
	namedFile = regexp.MustCompile(`^# \S+\.(yaml|sh)\n`)
	// Pages that are made from the program, and compared with it by tests of their own.
	generatedPages = []string{"../docs/commands.md", "../docs/permissions.md"}
)

// No example of the documentation is only text. Each says what it is: "console" is run and
// compared by TestGuides, "sh" has targets of the Makefile (other programs' command lines are
// run by scripts/test-clients.sh), "yaml" is read, and "text FILE" is what FILE has, a golden
// file, where a line "..." stands for any lines.
func TestExamplesInDocumentation(t *testing.T) {
	for _, path := range pages(t) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range block.FindAllStringSubmatch(string(data), -1) {
			language, file, _ := strings.Cut(m[1], " ")
			switch {
			case language == "console":
				if !strings.HasPrefix(m[2], "$ ") {
					t.Errorf("%s: a session begins with a command, not with %q", path, firstLine(m[2]))
				}
			case namedFile.MatchString(m[2]) && strings.Contains(string(data), "```console\n"):
			case language == "sh":
				checkTargets(t, path, m[2])
			case language == "yaml":
				checkYAML(t, path, m[2])
			case language == "go":
				if _, err := parser.ParseFile(token.NewFileSet(), path, "package p\n"+m[2], 0); err != nil {
					t.Error(err)
				}
			case language == "text" && file != "":
				checkSample(t, path, m[2], filepath.Join("..", file))
			default:
				t.Errorf("%s: nothing checks the example that begins with %q: name its language, or after \"text\" the golden file that it is from", path, firstLine(m[2]))
			}
		}
	}
}

// Shells expand what isn't quoted in their own ways: zsh ends with an error where no file fits a pattern, and bash makes
// two words of a list in braces.
func TestCommandsMeanTheSameInEachShell(t *testing.T) {
	quoted, pattern := regexp.MustCompile(`'[^']*'|"[^"]*"|\$\?|\$\(|\$\{`), regexp.MustCompile(`\*|\?|\w\[|\[\S|\{[^} ]*,`)
	found := 0
	for _, path := range pages(t) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range block.FindAllStringSubmatch(string(data), -1) {
			if m[1] != "console" {
				continue
			}
			for line := range strings.Lines(m[2]) {
				command, is := strings.CutPrefix(line, "$ ")
				if !is {
					continue
				}
				found++
				if pattern.MatchString(quoted.ReplaceAllString(command, "")) {
					t.Errorf("%s: quote what a shell may expand in: %s", path, command)
				}
			}
		}
	}
	if found < 50 {
		t.Errorf("found only %d commands", found)
	}
}

// pages are those of the documentation that people write.
func pages(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"../README.md", "../CONTRIBUTING.md", "../docs/*.md", "../docs/*/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no pages %s: %v", pattern, err)
		}
		found = append(found, files...)
	}
	return slices.DeleteFunc(found, func(path string) bool { return slices.Contains(generatedPages, path) })
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// checkTargets reports targets that the Makefile doesn't have.
func checkTargets(t *testing.T, path, text string) {
	t.Helper()
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`\bmake ([a-z0-9-]+)`).FindAllStringSubmatch(text, -1) {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(m[1]) + `:`).Match(makefile) {
			t.Errorf("%s: the Makefile has no target %s", path, m[1])
		}
	}
}

// checkYAML reports what isn't YAML, rules of a Role that aren't such, and inputs that our
// action and our component don't have.
func checkYAML(t *testing.T, path, text string) {
	t.Helper()
	var document any
	if err := yaml.UnmarshalStrict([]byte(text), &document); err != nil {
		t.Errorf("%s: %v\n%s", path, err, text)
		return
	}
	if strings.HasPrefix(text, "rules:\n") {
		var role rbacv1.Role
		if err := yaml.UnmarshalStrict([]byte(text), &role); err != nil {
			t.Errorf("%s: %v\n%s", path, err, text)
		}
	}
	given := regexp.MustCompile(`(?ms)^ +(?:with|inputs):\n(( +)\S[^\n]*\n(?:( +)\S[^\n]*\n)*)`).FindStringSubmatch(text)
	if given == nil {
		return
	}
	inputs := map[string]any{}
	if err := yaml.Unmarshal([]byte(given[1]), &inputs); err != nil || len(inputs) == 0 {
		t.Errorf("%s: what are the inputs? %v\n%s", path, err, text)
	}
	for name := range inputs {
		if source, has := declaresInput(t, text, name); !has {
			t.Errorf("%s: %s has no input %s", path, source, name)
		}
	}
}

// declaresInput reports whether what the example uses has an input of the name.
func declaresInput(t *testing.T, example, name string) (source string, has bool) {
	t.Helper()
	source = "../examples/github-action/action.yml"
	if strings.Contains(example, "component:") {
		source = "../examples/gitlab-component/deploy.yml"
	}
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	return source, regexp.MustCompile(`(?m)^ +` + regexp.QuoteMeta(name) + `: \{description:`).Match(text)
}

// checkSample reports lines of a sample that its golden file doesn't have, in this order.
func checkSample(t *testing.T, path, sample, golden string) {
	t.Helper()
	data, err := os.ReadFile(golden)
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	pattern := `(?m)^`
	for line := range strings.Lines(sample) {
		if strings.TrimSpace(line) == "..." {
			pattern += `(?:.*\n)*?`
			continue
		}
		pattern += regexp.QuoteMeta(line)
	}
	if !regexp.MustCompile(pattern).Match(data) {
		t.Errorf("%s: %s doesn't have what the sample shows:\n%s", path, golden, sample)
	}
}
