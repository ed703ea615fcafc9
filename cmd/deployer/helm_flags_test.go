package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A helmCommand is a command of the real helm, as its help tells of it.
type helmCommand struct {
	words   []string
	aliases []string
	flags   []helmFlag // its own and Helm's hidden ones, without the global ones
}

// A helmFlag is one flag as its help tells of it.
type helmFlag struct {
	name, short string
	value       bool // it needs a value
}

var (
	helmCommands = regexp.MustCompile(`(?m)^Available Commands:\n((?:  .*\n)+)`)
	helmFlagList = regexp.MustCompile(`(?m)^Flags:\n((?:  .*\n)+)`)
	helmFlagLine = regexp.MustCompile(`(?m)^ +(?:-(\w), )?--([\w-]+)(?: ([\w]+))?(\[=\S+\])? `)
	helmAliases  = regexp.MustCompile(`(?m)^Aliases:\n  (.*)\n`)
)

// hiddenFlags are those that Helm's help doesn't show.
// (helm.sh/helm/v3/cmd/helm: upgrade.go MarkDeprecated, version.go MarkHidden)
var hiddenFlags = map[string][]helmFlag{
	"upgrade": {{name: "recreate-pods"}},
	"version": {{name: "client", short: "c"}},
}

// helmTree asks the real helm for its commands and their flags.
func helmTree(t *testing.T, helm string, words ...string) []helmCommand {
	t.Helper()
	out, err := exec.Command(helm, append(slices.Clone(words), "--help")...).Output()
	if err != nil {
		t.Fatalf("helm %s --help: %v", strings.Join(words, " "), err)
	}
	help := string(out)
	c := helmCommand{words: words, flags: hiddenFlags[strings.Join(words, " ")]}
	if m := helmAliases.FindStringSubmatch(help); m != nil {
		c.aliases = strings.Split(m[1], ", ")[1:] // the first is the name itself
	}
	if m := helmFlagList.FindStringSubmatch(help); m != nil {
		for _, f := range helmFlagLine.FindAllStringSubmatch(m[1], -1) {
			if f[2] != "help" {
				c.flags = append(c.flags, helmFlag{name: f[2], short: f[1], value: f[3] != "" && f[4] == ""})
			}
		}
	}
	tree := []helmCommand{c}
	if m := helmCommands.FindStringSubmatch(help); m != nil {
		for line := range strings.Lines(m[1]) {
			tree = append(tree, helmTree(t, helm, append(slices.Clone(words), strings.Fields(line)[0])...)...)
		}
	}
	return tree
}

// without are Helm's commands that aren't there, and say what is.
var without = []string{"plugin", "completion bash", "completion zsh", "completion fish", "completion powershell"}

// Every command and flag of the real helm is one of ours, under each of its
// names, and takes a value or doesn't as there. Each flag is used by a script,
// which looks at what comes of it, or has no effect and says why.
func TestEveryFlagOfHelm(t *testing.T) {
	t.Parallel()
	helm := builtHelm(t)
	if helm == "" {
		t.Skip("needs the real helm: make helm3")
	}
	tree := helmTree(t, helm)
	if len(tree) < 40 {
		t.Fatalf("helm's help tells of %d commands only", len(tree))
	}
	used := usedFlags(t)
	count := 0
	for _, theirs := range tree {
		path := strings.Join(theirs.words, " ")
		if path == "" || slices.ContainsFunc(without, func(w string) bool { return path == w || strings.HasPrefix(path, w+" ") }) {
			continue
		}
		c := ours(t, theirs.words)
		if c == nil {
			continue
		}
		for _, alias := range theirs.aliases {
			if !slices.Contains(c.names(), alias) {
				t.Errorf("%s: helm has it as %s too", path, alias)
			}
		}
		table := flagTable(c.flags)
		for _, f := range theirs.flags {
			count++
			checkFlag(t, path, f, table, used)
		}
	}
	for _, f := range tree[0].flags {
		checkFlag(t, "", f, flagTable(globalFlags(testEnv(t, "helm"))), used)
	}
	t.Logf("%d commands, %d flags of commands, %d global ones", len(tree), count, len(tree[0].flags))
}

// ours is our command of that name.
func ours(t *testing.T, words []string) *command {
	t.Helper()
	commands := newCommands(testEnv(t, "helm"))
	var c *command
	for _, word := range words {
		if c = commandNamed(commands, word); c == nil {
			t.Errorf("there is no command %s", strings.Join(words, " "))
			return nil
		}
		commands = c.commands
	}
	return c
}

func checkFlag(t *testing.T, command string, f helmFlag, table map[string]*flag, used map[string]bool) {
	t.Helper()
	have := table[f.name]
	if have == nil {
		t.Errorf("%s: there is no flag --%s", command, f.name)
		return
	}
	if f.short != "" && table[f.short] != have {
		t.Errorf("%s: -%s isn't --%s", command, f.short, f.name)
	}
	if (have.value.bare != "") == f.value {
		t.Errorf("%s: helm's --%s needs a value: %t, ours: %t", command, f.name, f.value, !(have.value.bare != ""))
	}
	if !have.isHidden() && !used[family(command, have)+" --"+have.name] {
		t.Errorf("%s: no script uses --%s", command, have.name)
	}
}

// families are commands whose flags of the same name are read by the same
// lines of code: using one shows what the others do.
var families = []struct {
	categories []string // of the flags; nil for all
	commands   []string
}{
	{nil, []string{"show all", "show chart", "show values", "show readme", "show crds"}},
	{nil, []string{"dependency update", "dependency build"}},
	{nil, []string{"get all", "get values", "get manifest", "get hooks", "get notes", "get metadata"}},
	{[]string{"Values", chartGroup, "Access", "Rendering"}, []string{"template", "install", "upgrade"}}, // chartRequest
}

func family(command string, f *flag) string {
	for _, of := range families {
		if slices.Contains(of.commands, command) && (of.categories == nil || slices.Contains(of.categories, f.group)) {
			return of.commands[0]
		}
	}
	return command
}

// usedFlags are the flags that a script uses, as "command --flag", and as
// " --flag" those that every command has.
func usedFlags(t *testing.T) map[string]bool {
	t.Helper()
	paths, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	call := regexp.MustCompile(`(?m)^(?:\[\w+\] )*(?:! |! exec |exec |exits \d+ |until \S+ |both )(?:! '(?:''|[^'])*' |! \S+ )?(?:deployer |helm )?(.*)$`)
	used := map[string]bool{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		script, _, _ := strings.Cut(string(data), "\n-- ")
		for _, m := range call.FindAllStringSubmatch(script, -1) {
			line, err := parse(newCommands(testEnv(t, "helm")), shellWords(m[1]))
			if err != nil {
				continue // a script may try what isn't understood
			}
			for _, given := range line.flags {
				used[family(strings.Join(line.words, " "), given.flag)+" --"+given.flag.name] = true
				used[" --"+given.flag.name] = true
			}
		}
	}
	return used
}

// A flag without an effect says so, and why; what it has to be told that it
// does nothing about is not an effect either.
func TestFlagsWithoutEffectSaySo(t *testing.T) {
	told := map[string]bool{}
	var out strings.Builder
	e := testEnv(t, "deployer")
	e.streams.Err = &out
	for command, c := range leaves(newCommands(e)) {
		for _, f := range c.flags {
			if f.why == "" || f.is.has(everywhere) && command != "list" {
				continue
			}
			told[f.name] = true
			value := "7" // a text, or a number
			if f.value.words != nil {
				value = f.value.words[0]
			}
			if f.value.bare != "" {
				value = f.value.bare
			}
			if f.name == "server-side" || f.name == "client" { // true is what happens anyway
				value = "false"
			}
			out.Reset()
			if err := e.setFlag(f, value); err != nil || !strings.Contains(out.String(), "--"+f.name+" has no effect: "+f.why) {
				t.Errorf("%s --%s=%s: error %v, said %q", command, f.name, value, err, out.String())
			}
		}
	}
	t.Log(slices.Sorted(maps.Keys(told)))
}
