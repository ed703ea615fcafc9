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

	"github.com/urfave/cli/v2"
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
			if !c.HasName(alias) {
				t.Errorf("%s: helm has it as %s too", path, alias)
			}
		}
		table := flagTable(c.Flags)
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
func ours(t *testing.T, words []string) *cli.Command {
	t.Helper()
	commands := newApp(testEnv(t, "helm")).Commands
	var c *cli.Command
	for _, word := range words {
		if c = commandNamed(commands, word); c == nil {
			t.Errorf("there is no command %s", strings.Join(words, " "))
			return nil
		}
		commands = c.Subcommands
	}
	return c
}

func checkFlag(t *testing.T, command string, f helmFlag, table map[string]cli.Flag, used map[string]bool) {
	t.Helper()
	have := table[f.name]
	if have == nil {
		t.Errorf("%s: there is no flag --%s", command, f.name)
		return
	}
	if f.short != "" && table[f.short] != have {
		t.Errorf("%s: -%s isn't --%s", command, f.short, f.name)
	}
	if isBool(have) == f.value {
		t.Errorf("%s: helm's --%s needs a value: %t, ours: %t", command, f.name, f.value, !isBool(have))
	}
	if _, idle := idleFlag(have); !idle && !used[family(command, have)+" --"+have.Names()[0]] {
		t.Errorf("%s: no script uses --%s", command, have.Names()[0])
	}
}

func idleFlag(f cli.Flag) (*noOpFlag, bool) {
	g, ok := f.(*cli.GenericFlag)
	if !ok {
		return nil, false
	}
	i, ok := g.Value.(*noOpFlag)
	return i, ok
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
	{[]string{"Values", chartCategory, "Access", "Rendering"}, []string{"template", "install", "upgrade"}}, // chartRequest
}

func family(command string, f cli.Flag) string {
	for _, of := range families {
		if slices.Contains(of.commands, command) && (of.categories == nil || slices.Contains(of.categories, categoryOf(f))) {
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
			app := newApp(testEnv(t, "helm"))
			line, err := normalize(app, append([]string{"helm"}, shellWords(m[1])...))
			if err != nil {
				continue // a script may try what isn't understood
			}
			command := strings.Join(line.words, " ")
			c := leaves(app.Commands)[command]
			for _, word := range line.args[min(1+len(line.words), len(line.args)):] {
				if word == "--" {
					break
				}
				name, _, _ := strings.Cut(word, "=")
				if c != nil {
					used[family(command, flagTable(c.Flags)[strings.TrimPrefix(name, "--")])+" "+name] = true
				}
				used[" "+name] = true
			}
		}
	}
	return used
}

// A flag without an effect says so, and why; what it has to be told that it
// does nothing about is not an effect either.
func TestFlagsWithoutEffectSaySo(t *testing.T) {
	told := map[string]bool{}
	for command, c := range leaves(newApp(testEnv(t, "deployer")).Commands) {
		for _, f := range c.Flags {
			i, ok := idleFlag(f)
			if !ok || isGlobal(f) && command != "list" {
				continue
			}
			told[i.name] = true
			if i.why == "" {
				t.Errorf("%s --%s doesn't say why it has no effect", command, i.name)
			}
			value := "x"
			if i.words != nil {
				value = slices.DeleteFunc(slices.Clone(i.words), func(w string) bool { return slices.Contains(i.welcome, w) })[0]
			}
			var out strings.Builder
			i.e.streams.Err = &out
			if err := i.Set(value); err != nil || !strings.Contains(out.String(), "--"+i.name+" has no effect: "+i.why) {
				t.Errorf("%s --%s=%s: error %v, said %q", command, i.name, value, err, out.String())
			}
		}
	}
	t.Log(slices.Sorted(maps.Keys(told)))
}
