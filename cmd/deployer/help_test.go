package main

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/internal/view/textfmt"
)

// leaves are the commands that do something, by the words that name them.
func leaves(commands []*command, path ...string) map[string]*command {
	out := map[string]*command{}
	for _, c := range commands {
		words := append(append([]string{}, path...), c.name)
		if len(c.commands) == 0 {
			out[strings.Join(words, " ")] = c
		}
		for name, leaf := range leaves(c.commands, words...) {
			out[name] = leaf
		}
	}
	return out
}

// commandLines finds the lines of a text that call the program.
func commandLines(text string) []string {
	var out []string
	text = strings.ReplaceAll(text, "\\\n", " ")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(line), "$ "), "- "))
		if _, after, ok := strings.Cut(line, "| deployer "); ok {
			line = "deployer " + after
		}
		if strings.HasPrefix(line, "deployer ") {
			out = append(out, line)
		}
	}
	return out
}

// shellWords splits a line as a shell would, as far as examples need it.
func shellWords(line string) []string {
	var words []string
	word, quote, inside := "", rune(0), false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word += string(r)
		case r == '\'' || r == '"':
			quote, inside = r, true
		case strings.ContainsRune("|>;&#", r) && !inside && word == "":
			return words
		case r == ' ' || r == '\t':
			if inside {
				words = append(words, word)
			}
			word, inside = "", false
		default:
			word, inside = word+string(r), true
		}
	}
	if inside {
		words = append(words, word)
	}
	return words
}

// understood checks that a command line means something to the program.
func understood(t *testing.T, where, line string) {
	t.Helper()
	e := testEnv(t, "deployer")
	got, err := parse(newCommands(e), shellWords(line)[1:])
	if err != nil {
		t.Errorf("%s: %s\n%v", where, line, err)
		return
	}
	if got.leaf == nil || got.help != noHelp {
		return
	}
	for _, given := range got.flags {
		if given.flag.name == "readiness-rules" {
			continue // the file of the example isn't there
		}
		if err := given.flag.value.set(given.value); err != nil {
			t.Errorf("%s: %s\n--%s: %v", where, line, given.flag.name, err)
		}
	}
}

func TestExamplesInHelp(t *testing.T) {
	t.Parallel()
	for name, c := range leaves(newCommands(testEnv(t, "deployer"))) {
		if c.examples == "" || c.codes == "" {
			t.Errorf("the help of %s lacks examples or exit codes", name)
		}
		for _, line := range commandLines(c.examples) {
			understood(t, name, line)
		}
	}
}

// What -h shows fits a terminal; --help has everything, and says so.
func TestBriefHelpFitsAScreen(t *testing.T) {
	e := testEnv(t, "deployer")
	commands := newCommands(e)
	for name := range leaves(commands) {
		text, err := e.call.helpText(commands, strings.Fields(name), 80, briefHelp)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(text, "\n"); n > 42 {
			t.Errorf("%s -h has %d lines, want at most 42", name, n)
		}
		if !strings.Contains(text, name+" --help") {
			t.Errorf("%s -h doesn't say how to see all flags:\n%s", name, text)
		}
	}
}

// --help fits two screens, and says where the rest is.
func TestUsualHelpFitsTwoScreens(t *testing.T) {
	e := testEnv(t, "deployer")
	commands := newCommands(e)
	for name := range leaves(commands) {
		text, err := e.call.helpText(commands, strings.Fields(name), 80, usualHelp)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(text, "\n"); n > 84 {
			t.Errorf("%s --help has %d lines, want at most 84", name, n)
		}
		if !strings.Contains(text, name+" --help-all") { // each command has rare flags, such as --qps
			t.Errorf("%s --help doesn't say how to see all flags:\n%s", name, text)
		}
	}
}

// choiceDefaults are what the packages do that the flags are for, when nothing is said:
// the zero values of apply's policies.
var choiceDefaults = map[string]string{
	"conflicts": string(decide.TakeConflicts), "gate": string(apply.GateStrict), "field-validation": string(apply.ValidationWarn), "crds": string(apply.AddCRDs),
	"generated": "keep", "cascade": "background", "progress": "auto", "color": "auto", "logs": "jobs",
}

// Who reads the help of a flag with a few values to choose from learns which one counts
// without it, and nobody reads the marks of this source.
func TestHelpTellsDefaultsOfChoices(t *testing.T) {
	for _, f := range allFlags(newCommands(testEnv(t, "deployer"))) {
		if f.isHidden() {
			continue
		}
		text := f.label() + "  " + f.describe()
		if strings.Contains(text, "`") {
			t.Errorf("marks in the help: %s", text)
		}
		if f.value.words != nil && f.value.bare == "" && f.name != "output" {
			if want := choiceDefaults[f.name]; want == "" || !strings.Contains(text, "(default "+want+")") {
				t.Errorf("want default %q in: %s", want, text)
			}
		}
	}
}

func TestHelpFits(t *testing.T) {
	e := testEnv(t, "deployer")
	commands := newCommands(e)
	pages := []string{""}
	for name := range leaves(commands) {
		pages = append(pages, name)
	}
	for _, name := range pages {
		text, err := e.call.helpText(commands, strings.Fields(name), 80, allHelp)
		if err != nil {
			t.Fatal(err)
		}
		inExamples := false
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\n")
			// Examples are to be copied: they stay on one line.
			inExamples = strings.HasPrefix(line, "Examples:") || inExamples && line != ""
			if n := utf8.RuneCountInString(line); n > 80 && !inExamples {
				t.Errorf("help of %q has a line of %d cells: %s", name, n, line)
			}
			if strings.HasSuffix(line, " ") {
				t.Errorf("help of %q has a line that ends with a space: %q", name, line)
			}
		}
	}
}

const commandsDoc = `# Commands

Look here for what a command does, and which flags it has; ` + "`deployer COMMAND --help-all`" + ` says the same. Flags that several
commands have are described once, under [Shared flags](#shared-flags): the name of a group, such as Access, stands for all of it.
The environment can set each flag, ` + "`--kube-context`" + ` as ` + "`DEPLOYER_KUBE_CONTEXT`" + ` ([environment.md](environment.md)).
[Exit codes](exit-codes.md) that aren't mentioned are 0 (done), 1 (failed) and 8 (done without its output). This page is made
from the program (` + "`make golden`" + `).
`

// docWidth is that of the texts in docs/commands.md.
const docWidth = 96

func TestCommandsDoc(t *testing.T) {
	e := testEnv(t, "deployer")
	commands := newCommands(e)
	shared := sharedFlags(commands)
	text := commandsDoc
	var walk func(commands []*command, path ...string)
	walk = func(commands []*command, path ...string) {
		for i, c := range commands {
			if len(path) > 0 && i > 0 && c.steps == commands[0].steps { // the first of the group says it
				same := *c
				same.steps, c = "", &same
			}
			words := append(slices.Clone(path), c.name)
			heading := strings.TrimSpace(strings.Join(words, " ") + " " + c.args)
			text += "\n" + strings.Repeat("#", 1+len(words)) + " deployer " + heading + "\n\n" + docOf(e, c, words, shared)
			walk(c.commands, words...)
		}
	}
	walk(commands)
	text += "\n## Shared flags\n"
	for _, g := range shared {
		text += "\n### " + g.title + "\n\n"
		if g.title == globalGroup {
			text += "Every command has them.\n\n"
		}
		text += "```\n" + flagRows(g.items, docWidth) + "\n```\n"
	}
	compareDoc(t, "../../docs/commands.md", text)
}

// sharedFlags are the flags that several commands describe alike, in their groups.
func sharedFlags(commands []*command) []helpGroup[*flag] {
	commandsOf, shared := map[string]int{}, map[string]*flag{}
	for _, c := range leaves(commands) {
		for _, f := range c.flags {
			if f.isHidden() {
				continue
			}
			commandsOf[f.row()]++
			if shared[f.row()] == nil || f.group > shared[f.row()].group {
				shared[f.row()] = f // under the title of a group, if it has one anywhere
			}
		}
	}
	maps.DeleteFunc(shared, func(row string, _ *flag) bool { return commandsOf[row] == 1 })
	inOrder := slices.SortedFunc(maps.Values(shared), func(a, b *flag) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.name, b.name), cmp.Compare(a.usage, b.usage))
	})
	return grouped(inOrder, func(f *flag) string { return cmp.Or(f.group, "Various") })
}

// row is how a flag is described.
func (f *flag) row() string { return f.label() + f.describe() }

// docOf is what docs/commands.md says of a command: its help, with the flags that other commands don't have, and which of
// the shared ones it has.
func docOf(e *env, c *command, words []string, shared []helpGroup[*flag]) string {
	if c.action == nil {
		return textfmt.Capitalized(c.usage) + ".\n"
	}
	isShared := map[string]bool{}
	var others, single []string
	for _, g := range shared {
		var has, lacks []string
		for _, f := range g.items {
			if own := flagTable(c.flags)[f.name]; own != nil && !own.isHidden() && own.row() == f.row() {
				isShared[own.row()] = true
				has = append(has, "`--"+f.name+"`")
			} else {
				lacks = append(lacks, "`--"+f.name+"`")
			}
		}
		switch {
		case g.title == globalGroup:
		case len(lacks) == 0:
			others = append(others, g.title)
		case len(lacks) < len(has)/2:
			others = append(others, g.title+" but "+strings.Join(lacks, " "))
		default:
			single = append(single, has...)
		}
	}
	alone := *c
	if alone.codes = strings.Replace(c.codes, unwritten, "", 1); strings.HasPrefix(alone.codes, "0 done; 1 ") && strings.Count(alone.codes, ";") == 1 {
		alone.codes = "" // the page begins with it
	}
	alone.flags = slices.DeleteFunc(slices.Clone(c.flags), func(f *flag) bool { return isShared[f.row()] })
	page := e.call.pageOf(&alone, "deployer "+strings.Join(words, " "), docWidth, allHelp)
	_, page[0], _ = strings.Cut(page[0], "\n") // the heading has the usage
	text := textfmt.Capitalized(c.usage) + ".\n\n" + strings.Join(slices.DeleteFunc(page, func(part string) bool { return part == "" }), "\n\n")
	text = "```\n" + strings.TrimSpace(strings.ReplaceAll(text, environmentNote, "")) + "\n```\n"
	if others = slices.DeleteFunc(append(others, strings.Join(single, " ")), func(part string) bool { return part == "" }); len(others) > 0 {
		text += "\nShared flags: " + strings.Join(textfmt.WrapWords(strings.Join(others, ", "), 110), "\n") + "\n"
	}
	return text
}

func compareDoc(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Errorf("%s differs from what the program says: go test ./cmd/deployer -run %s -update", path, t.Name())
	}
}

// Every variable that a flag reads, beside DEPLOYER_…, is in the documentation.
func TestEnvironmentDoc(t *testing.T) {
	data, err := os.ReadFile("../../docs/environment.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, f := range allFlags(newCommands(testEnv(t, "deployer"))) {
		for _, name := range f.variables() {
			if !strings.HasPrefix(name, "DEPLOYER_") && !strings.Contains(string(data), "`"+name+"`") && !told[name] {
				told[name] = true
				t.Errorf("docs/environment.md doesn't have %s of --%s", name, f.name)
			}
		}
	}
}

// Command lines in the documentation and the examples are understood, also those within a
// sentence, where "…" and what is in brackets stands for anything.
func TestCommandLinesInDocs(t *testing.T) {
	var files []string
	for _, pattern := range []string{"../../docs/*.md", "../../docs/*/*.md", "../../examples/*.yaml", "../../*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	blocks := regexp.MustCompile("(?s)```(?:sh|console)\n(.*?)```")
	spans := regexp.MustCompile("`(deployer [^`\n]*)`")
	variable := regexp.MustCompile(`\$\{\{[^}]*\}\}|\$\([^)]*\)|\$\{?\w+\}?|…|\[[^\]]*\]`)
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		if filepath.Ext(path) == ".yaml" {
			var any map[string]any
			if err := yaml.UnmarshalStrict(data, &any); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		} else {
			text = ""
			for _, pattern := range []*regexp.Regexp{blocks, spans} {
				for _, m := range pattern.FindAllStringSubmatch(string(data), -1) {
					text += m[1] + "\n"
				}
			}
		}
		for _, line := range commandLines(text) {
			understood(t, path, variable.ReplaceAllString(line, "5"))
		}
	}
}

// The guide for people who come from Helm names every command, every flag that
// is accepted and does nothing, and no command line that no script has run:
// testdata/script/migrating.txtar has them as they stand there.
func TestMigrationGuide(t *testing.T) {
	data, err := os.ReadFile("../../docs/migrating-from-helm.md")
	if err != nil {
		t.Fatal(err)
	}
	guide := string(data)
	commands := newCommands(testEnv(t, "deployer"))
	for _, c := range commands {
		if c.name != "help" && !regexp.MustCompile("`(deployer |helm )?"+c.name+"\\b").MatchString(guide) {
			t.Errorf("the guide doesn't have the command %s", c.name)
		}
	}
	for _, f := range allFlags(commands) {
		if f.why != "" && !f.is.has(everywhere) && !strings.Contains(f.why, " only ") && !strings.Contains(guide, "`--"+f.name+"`") {
			t.Errorf("the guide doesn't have --%s", f.name)
		}
	}
	script, err := os.ReadFile("testdata/script/migrating.txtar")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?m)^ *(deployer .*)$|`(deployer [^`…]*)`").FindAllStringSubmatch(guide, -1)
	if len(shown) < 7 {
		t.Fatalf("found only %d command lines", len(shown))
	}
	for _, m := range shown {
		line := strings.ReplaceAll(m[1]+m[2], "-n prod", "-n $NAMESPACE")
		if !strings.Contains(string(script), "exec "+line+"\n") {
			t.Errorf("no script runs %q", line)
		}
	}
}
