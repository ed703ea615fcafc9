package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"deployer/internal/program"
)

// A commandLine is a normalised command line: flags stand before arguments, and each flag
// has its first name and its value attached.
type commandLine struct {
	args  []string     // program, command words, --flags, "--", arguments
	words []string     // the command words alone
	flags []string     // the flags alone
	leaf  *cli.Command // the command that runs; nil for a group of commands
	help  bool         // --help or -h was among the flags
	brief bool         // it was -h, which shows the common flags only
}

// normalize rewrites a command line so that the flag package understands it as
// Helm's users mean it: flags may stand before the command, before and after
// arguments, and short flags may be joined (-nprod, -Aq). Everything after
// "--" is an argument.
func normalize(app *cli.App, args []string) (commandLine, error) {
	p := &normalizer{flags: flagTable(app.Flags), commands: app.Commands}
	rest := args[1:]
	if len(rest) == 1 && (rest[0] == "--version" || rest[0] == "-v") {
		rest = []string{"version"} // as many programs do
	}
	for len(rest) > 0 {
		var err error
		if rest, err = p.next(rest); err != nil {
			return commandLine{words: p.words}, &usageError{err: err, command: strings.Join(p.words, " ")}
		}
	}
	if p.help {
		return commandLine{words: p.words, help: true, brief: p.brief}, nil
	}
	if p.leaf == nil && len(p.arguments) > 0 && len(p.commands) > 0 {
		return commandLine{words: p.words}, unknownCommand(p.words, p.arguments[0], p.commands)
	}
	out := slices.Concat(args[:1], p.words, p.given)
	if len(p.arguments) > 0 {
		out = slices.Concat(out, []string{"--"}, p.arguments)
	}
	return commandLine{args: out, words: p.words, flags: p.given, leaf: p.leaf}, nil
}

type normalizer struct {
	commands  []*cli.Command // that may come next
	leaf      *cli.Command   // the command found, nil so far
	flags     map[string]cli.Flag
	words     []string // command words
	given     []string // flags in the order given
	arguments []string
	help      bool
	brief     bool
}

// next takes the first token, and what belongs to it, off the rest.
func (p *normalizer) next(rest []string) ([]string, error) {
	token := rest[0]
	switch {
	case token == "--":
		p.arguments = append(p.arguments, rest[1:]...)
		return nil, nil
	case strings.HasPrefix(token, "--"):
		return p.long(token[2:], rest[1:])
	case strings.HasPrefix(token, "-") && len(token) > 1:
		return p.short(token[1:], rest[1:])
	}
	p.word(token)
	return rest[1:], nil
}

// word takes a command word while there are commands to choose from, and an
// argument afterwards.
func (p *normalizer) word(token string) {
	c := commandNamed(p.commands, token)
	if c == nil || len(p.arguments) > 0 {
		p.arguments = append(p.arguments, token)
		return
	}
	p.words = append(p.words, c.Name)
	p.commands = c.Subcommands
	maps.Copy(p.flags, flagTable(c.Flags))
	if len(c.Subcommands) == 0 {
		p.leaf = c
	}
}

func commandNamed(commands []*cli.Command, word string) *cli.Command {
	for _, c := range commands {
		if c.HasName(word) {
			return c
		}
	}
	return nil
}

func (p *normalizer) long(body string, rest []string) ([]string, error) {
	name, value, hasValue := strings.Cut(body, "=")
	f, err := p.find(name, "--"+name, rest)
	switch {
	case err != nil:
		return nil, err
	case isHelp(f):
		p.help, p.brief = !hasValue || value != "false", false
	case hasValue:
		p.addFlag(f, "="+value)
	case isBool(f):
		p.addFlag(f, "")
	default:
		return p.withValue("--"+name, f, rest)
	}
	return rest, nil
}

// short takes one-letter flags written together: the letters of bools, and
// last one with a value, which may be attached (-nprod, -n=prod) or follow.
func (p *normalizer) short(body string, rest []string) ([]string, error) {
	for body != "" {
		letter, size := utf8.DecodeRuneInString(body)
		name := string(letter)
		body = body[size:]
		f, err := p.find(name, "-"+name, rest)
		switch {
		case err != nil:
			return nil, err
		case isHelp(f):
			p.help, p.brief = true, true
		case isBool(f):
			if value, found := strings.CutPrefix(body, "="); found {
				p.addFlag(f, "="+value)
				return rest, nil
			}
			p.addFlag(f, "")
		case body != "":
			p.addFlag(f, "="+strings.TrimPrefix(body, "="))
			return rest, nil
		default:
			return p.withValue("-"+name, f, rest)
		}
	}
	return rest, nil
}

// find finds a flag by name. A flag before its command belongs to that command, so the command
// is found first: -r and -l take values with some commands only.
func (p *normalizer) find(name, written string, rest []string) (cli.Flag, error) {
	if f, ok := p.flags[name]; ok {
		return f, nil
	}
	if p.leaf == nil && len(p.commands) > 0 {
		if ahead := p.upcomingCommand(rest); ahead != nil {
			p = &normalizer{leaf: ahead, words: []string{ahead.Name}, flags: flagTable(ahead.Flags)}
			if f, ok := p.flags[name]; ok {
				return f, nil
			}
		} else if f := findFlag(p.commands, name); f != nil {
			return f, nil
		}
	}
	return nil, p.unknown(written)
}

// upcomingCommand returns the command that the following words name; nil when there is none.
// Values of global flags before it are skipped, because they may look like commands.
func (p *normalizer) upcomingCommand(rest []string) *cli.Command {
	commands := p.commands
	for i := 0; i < len(rest); i++ {
		token := rest[i]
		if token == "--" {
			return nil
		}
		if strings.HasPrefix(token, "-") && len(token) > 1 {
			if f := findFlag(commands, strings.TrimLeft(token, "-")); f != nil && isGlobal(f) && !isBool(f) {
				i++
			}
			continue
		}
		if c := commandNamed(commands, token); c != nil {
			if len(c.Subcommands) == 0 {
				return c
			}
			commands = c.Subcommands
		}
	}
	return nil
}

func (p *normalizer) addFlag(f cli.Flag, value string) {
	p.given = append(p.given, "--"+f.Names()[0]+value)
}

func (p *normalizer) withValue(written string, f cli.Flag, rest []string) ([]string, error) {
	if len(rest) == 0 {
		return nil, fmt.Errorf("flag %s needs a value", written)
	}
	p.addFlag(f, "="+rest[0])
	return rest[1:], nil
}

func (p *normalizer) unknown(written string) error {
	err := fmt.Errorf("unknown flag %s", written)
	if p.leaf != nil {
		err = fmt.Errorf("unknown flag %s of %s", written, strings.Join(p.words, " "))
	}
	known := maps.Clone(p.flags)
	if p.leaf == nil {
		maps.Copy(known, flagTable(allFlags(p.commands)))
	}
	if name, negated := strings.CutPrefix(written, "--no-"); negated && known[name] != nil && isBool(known[name]) {
		return program.WithHint(err, "did you mean --"+name+"=false?")
	}
	var candidates, rare []string
	for n, f := range known {
		switch {
		case len(n) == 1 || isDestructive(f):
		case isHidden(f):
			rare = append(rare, "--"+n)
		default:
			candidates = append(candidates, "--"+n)
		}
	}
	return suggest(err, written, candidates, rare...)
}

func unknownCommand(words []string, token string, commands []*cli.Command) error {
	var names []string
	for _, c := range commands {
		if !c.Hidden && !strings.ContainsAny(token, "/.") { // which is a path, not a mistyped command
			names = append(names, c.Name)
		}
	}
	of := ""
	if len(words) > 0 {
		of = " of " + strings.Join(words, " ")
	}
	return &usageError{err: suggest(fmt.Errorf("unknown command %q%s", token, of), token, names), command: strings.Join(words, " ")}
}

func flagTable(flags []cli.Flag) map[string]cli.Flag {
	table := map[string]cli.Flag{"help": cli.HelpFlag, "h": cli.HelpFlag}
	for _, f := range flags {
		for _, n := range f.Names() {
			table[n] = f
		}
	}
	return table
}

// findFlag finds a flag in a tree of commands.
func findFlag(commands []*cli.Command, name string) cli.Flag {
	for _, f := range allFlags(commands) {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

// allFlags are the flags of a tree of commands.
func allFlags(commands []*cli.Command) []cli.Flag {
	var out []cli.Flag
	for _, c := range commands {
		out = append(append(out, c.Flags...), allFlags(c.Subcommands)...)
	}
	return out
}

// isBool reports whether a flag may stand without a value.
func isBool(f cli.Flag) bool {
	if g, ok := f.(*cli.GenericFlag); ok {
		b, ok := g.Value.(interface{ IsBoolFlag() bool })
		return ok && b.IsBoolFlag()
	}
	_, ok := f.(*cli.BoolFlag)
	return ok
}

func isHelp(f cli.Flag) bool { return f.Names()[0] == "help" }

func isGlobal(f cli.Flag) bool { return categoryOf(f) == globalCategory }

func isHidden(f cli.Flag) bool { return !f.(cli.VisibleFlag).IsVisible() }
