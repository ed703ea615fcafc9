package main

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

// A command is one command of the program, or a group of them. With its flags it is the only description of the command
// line: parsing, environment, help, completion, suggestions and the pages of docs/ are functions of it.
type command struct {
	name     string
	also     string // other names, separated by blanks
	group    string // title in the program's help
	usage    string // in one line, without a full stop
	args     string // in the usage, such as NAME [CHART]
	takes    string // the arguments as errors name them, such as "a release name"
	complete string // what completes the arguments, where args has other words
	steps    string // what it does
	examples string // command lines, one a line
	codes    string // exit codes; empty for those of most commands
	is       attribute
	flags    []*flag
	commands []*command // of a group, which has no action
	action   action
}

// A flag is one flag of a command.
type flag struct {
	name    string
	also    string // other names, separated by blanks
	group   string // title in help
	usage   string // in help; the name of its value is in backquotes
	env     string // Helm's variables for it, separated by blanks; ours has the flag's name
	kubectl string // kubectl's flag that chooses the same cluster
	is      attribute
	why     string   // why a flag of Helm has no effect here; such a flag isn't shown
	welcome []string // values of such a flag that ask for what happens anyway
	value   value

	given bool // on the command line or in the environment
}

// An attribute is what has to be known of a flag or command, beside how it is written. A flag has one of common, usual and
// rare, and one of safe and risky.
type attribute uint

const (
	common attribute = 1 << iota // help shows it first, and -h nothing else
	usual
	rare      // only --help-all shows it
	safe      // may be suggested for a mistyped word
	risky     // deletes, overrides or skips a check: suggestions are pasted without thought
	fixed     // a saved plan has decided it, so apply doesn't have it
	rendering // says what is rendered from which chart, so apply needs it again
	reporting // says how and where a run reports its end, also one that never began
	applying  // has an effect only where objects are applied, and none in an uninstall

	everywhere    // of every command
	ofThisRun     // of every command, but not to be repeated in a command line that carries this run's plan out
	noVariable    // has no variable of ours
	notForPlugins // plugins find it in their environment, and not among their arguments
	alsoPlugins   // plugins find it in both

	changes      // a command that changes a cluster, files or servers: it goes on when nobody reads its output
	reads        // a command that only reads the cluster: it has --timeout
	reports      // a command that tells programs how it ended: as its last event, as YAML, and in files
	beyondHelm   // a command that isn't offered under the name helm
	severalForms // a command whose arguments depend on its flags: it checks them by itself
	yields       // a command whose other names are those of plugins, which come first where they are installed
)

func (a attribute) has(one attribute) bool { return a&one != 0 }

// An action does what a command is for.
type action func(ctx context.Context, args []string) error

func (c *command) names() []string { return append([]string{c.name}, strings.Fields(c.also)...) }

func (f *flag) names() []string { return append([]string{f.name}, strings.Fields(f.also)...) }

// withDashes is one of the names of a flag, as it is written.
func withDashes(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// isHidden reports whether a flag is only there for scripts that were written for Helm.
func (f *flag) isHidden() bool { return f.why != "" }

func commandNamed(commands []*command, word string) *command {
	for _, c := range commands {
		if slices.Contains(c.names(), word) {
			return c
		}
	}
	return nil
}

// reservedCommand is the command that a word means even if a plugin has this name.
func reservedCommand(commands []*command, word string) *command {
	if c := commandNamed(commands, word); c != nil && (word == c.name || !c.is.has(yields)) {
		return c
	}
	return nil
}

// flagTable has flags by each of their names.
func flagTable(flags []*flag) map[string]*flag {
	table := make(map[string]*flag, 2*len(flags))
	for _, f := range flags {
		for _, name := range f.names() {
			table[name] = f
		}
	}
	return table
}

// inGroup gives flags their title in help, unless they have one.
func inGroup(title string, flags []*flag) []*flag {
	for _, f := range flags {
		f.group = cmp.Or(f.group, title)
	}
	return flags
}

// allFlags are the flags of a tree of commands.
func allFlags(commands []*command) []*flag {
	var out []*flag
	for _, c := range commands {
		out = append(append(out, c.flags...), allFlags(c.commands)...)
	}
	return out
}

// newCommands builds the commands of the program.
func newCommands(e *env) []*command {
	e.global = globalFlags(e)
	e.commands = commands(e)
	for _, c := range e.commands {
		setUpCommand(e, c)
	}
	return e.commands
}

const doneOrFailed = "0 done; 1 failed" // the exit codes of most commands

// setUpCommand gives a command what its attributes mean, and what all commands have.
func setUpCommand(e *env, c *command) {
	for _, sub := range c.commands {
		sub.is |= c.is & reads
		setUpCommand(e, sub)
	}
	if c.action == nil {
		return
	}
	if c.is.has(reads) {
		limitByTimeout(c)
	}
	c.codes = cmp.Or(c.codes, doneOrFailed)
	if c.is.has(changes) {
		c.codes = withUnwritten(c.codes)
	}
	body := c.action
	c.action = func(ctx context.Context, args []string) error {
		if c.is.has(changes) {
			e.surviveBrokenPipes()
		}
		if !c.is.has(severalForms) {
			if err := e.call.checkArguments(c.args, c.takes, args); err != nil {
				return err
			}
		}
		return body(ctx, args)
	}
	c.flags = append(c.flags, e.global...)
}

// pluginGroup is the title of what plugins have added to the program's help.
const pluginGroup = "Plugins"

// commands lists the program's commands in the order of its help, each with the title of its group.
func commands(e *env) []*command {
	var all []*command
	for _, group := range []struct {
		title    string
		commands []*command
	}{
		{"Change a release", []*command{
			upgradeCommand(e), installCommand(e), planCommand(e), applyCommand(e), rollbackCommand(e), uninstallCommand(e), testCommand(e), recoverCommand(e),
		}},
		{"Look at releases", []*command{
			listCommand(e), statusCommand(e), historyCommand(e), getCommand(e), explainCommand(e),
		}},
		{"Work on charts", []*command{
			templateCommand(e), lintCommand(e), showCommand(e), createCommand(e), dependencyCommand(e), packageCommand(e), verifyCommand(e),
		}},
		{"Fetch and publish charts", []*command{
			repoCommand(e), searchCommand(e), pullCommand(e), pushCommand(e), registryCommand(e),
		}},
		{"This program", []*command{
			pluginCommand(e), envCommand(e), versionCommand(e), completionCommand(e), helpCommand(e),
		}},
	} {
		for _, c := range group.commands {
			c.group = group.title
		}
		all = append(all, group.commands...)
	}
	return all
}
