package main

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"deployer/internal/program"
)

// A commandLine is what a command line says: which command runs, with which flags, each with its value, and arguments.
type commandLine struct {
	words     []string // of the command, by their first names
	leaf      *command // nil for a group
	flags     []givenFlag
	arguments []string
	help      helpLevel // asked for by a flag
}

// command is what runs, with its group, such as "repo add".
func (l commandLine) command() string { return strings.Join(l.words, " ") }

// hasFlag reports whether a flag is on the command line. One in the environment isn't.
func (l commandLine) hasFlag(name string) bool {
	return slices.ContainsFunc(l.flags, func(given givenFlag) bool { return given.flag.name == name })
}

// A givenFlag is a flag on the command line.
type givenFlag struct {
	flag  *flag
	value string
}

func (g givenFlag) String() string { return "--" + g.flag.name + "=" + g.value }

// A helpLevel is how much help shows.
type helpLevel int

const (
	noHelp    helpLevel = iota
	briefHelp           // -h: what most command lines have
	usualHelp           // --help
	allHelp             // --help-all
)

// helpFlags are known to every command, and ask for help instead of running it.
var helpFlags = map[string]helpLevel{"h": briefHelp, "help": usualHelp, "help-all": allHelp}

// A parser reads a command line as Helm's users mean it: flags may stand before the command, before and after arguments,
// and short flags may be joined (-nprod, -Aq). Everything after "--" is an argument. A flag before its command belongs to
// that command, so the command is found first: -r and -l take values with some commands only.
type parser struct {
	commandLine
	commands []*command       // that may come next
	path     string           // of the command that the line names; empty if it names none
	known    map[string]*flag // those of that command, else of all that may come
}

func newParser(commands []*command, words []string) *parser {
	path, flags := findCommand(commands, words)
	return &parser{commands: commands, path: path, known: flagTable(flags)}
}

// parse reads the words after the program's name.
func parse(commands []*command, words []string) (commandLine, error) {
	if len(words) == 1 && (words[0] == "--version" || words[0] == "-v") {
		words = []string{"version"} // as many programs do
	}
	p := newParser(commands, words)
	var problems []error
	for len(words) > 0 {
		rest, err := p.next(words)
		if err != nil {
			problems, rest = append(problems, err), words[1:]
		}
		words = rest
	}
	if len(problems) > 0 {
		return p.commandLine, p.withUsageHint(errors.Join(problems...))
	}
	if p.help == noHelp && p.leaf == nil && len(p.arguments) > 0 {
		return commandLine{words: p.words}, unknownCommand(p.words, p.arguments[0], p.commands)
	}
	return p.commandLine, nil
}

// next takes the first word, and what belongs to it, off the rest.
func (p *parser) next(rest []string) ([]string, error) {
	word := rest[0]
	switch {
	case word == "--":
		p.arguments = append(p.arguments, rest[1:]...)
		return nil, nil
	case strings.HasPrefix(word, "--"):
		return p.long(word[2:], rest[1:])
	case strings.HasPrefix(word, "-") && len(word) > 1:
		return p.short(word[1:], rest[1:])
	}
	p.word(word)
	return rest[1:], nil
}

// word takes the word of a command while there are commands to choose from, and an argument afterwards.
func (p *parser) word(word string) {
	c := commandNamed(p.commands, word)
	if c == nil || len(p.arguments) > 0 {
		p.arguments = append(p.arguments, word)
		return
	}
	p.words = append(p.words, c.name)
	p.commands = c.commands
	if f := p.known[word]; f != nil && word != c.name { // drift: a name for the command with that switch
		p.flags = append(p.flags, givenFlag{f, f.value.bare})
	}
	if c.action != nil {
		p.leaf = c
	}
}

func (p *parser) long(body string, rest []string) ([]string, error) {
	name, value, hasValue := strings.Cut(body, "=")
	if level, ok := helpFlags[name]; ok && level != briefHelp {
		if !hasValue || value != "false" {
			p.help = level
		}
		return rest, nil
	}
	f := p.known[name]
	switch {
	case f == nil:
		return nil, p.unknownFlag("--" + name)
	case !hasValue && f.value.bare == "":
		return p.withValue("--"+name, f, rest)
	case !hasValue:
		value = "true"
	}
	p.flags = append(p.flags, givenFlag{f, value})
	return rest, nil
}

// short takes one-letter flags written together: the letters of switches, and last one with a value, which may be
// attached (-nprod, -n=prod) or follow.
func (p *parser) short(body string, rest []string) ([]string, error) {
	for body != "" {
		_, size := utf8.DecodeRuneInString(body)
		name, value := body[:size], body[size:]
		body = value
		if helpFlags[name] != noHelp {
			p.help = helpFlags[name]
			continue
		}
		f := p.known[name]
		attached, isAttached := strings.CutPrefix(value, "=")
		switch {
		case f == nil:
			return nil, p.unknownFlag("-" + name)
		case f.value.bare != "" && !isAttached:
			p.flags = append(p.flags, givenFlag{f, "true"})
			continue
		case value == "":
			return p.withValue("-"+name, f, rest)
		}
		p.flags = append(p.flags, givenFlag{f, attached})
		break
	}
	return rest, nil
}

func (p *parser) withValue(written string, f *flag, rest []string) ([]string, error) {
	if len(rest) == 0 {
		return nil, fmt.Errorf("flag %s needs a value", written)
	}
	p.flags = append(p.flags, givenFlag{f, rest[0]})
	return rest[1:], nil
}

// plainWords are the words up to "--", with their places, that are neither flags nor values of the known ones.
func plainWords(words []string, known map[string]*flag) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for i := 0; i < len(words) && words[i] != "--"; i++ {
			name := strings.TrimLeft(words[i], "-")
			if name == words[i] || name == "" {
				if !yield(i, words[i]) {
					return
				}
			} else if f := known[name]; f != nil && f.value.bare == "" {
				i++
			}
		}
	}
}

// findCommand returns the path of the command that words name, such as "repo add", and its flags; without one no path, and
// the flags of all that may follow. Values of flags that every command has are skipped, because they may look like commands.
func findCommand(commands []*command, words []string) (path string, flags []*flag) {
	global := flagTable(slices.DeleteFunc(allFlags(commands), func(f *flag) bool { return !f.is.has(everywhere) }))
	for _, word := range plainWords(words, global) {
		if c := commandNamed(commands, word); c != nil {
			path = strings.TrimSpace(path + " " + c.name)
			if c.action != nil {
				return path, c.flags
			}
			commands = c.commands
		}
	}
	return "", allFlags(commands)
}

func (p *parser) unknownFlag(written string) error {
	err := fmt.Errorf("unknown flag %s", written)
	if p.path != "" {
		err = fmt.Errorf("unknown flag %s of %s", written, p.path)
	}
	if name, negated := strings.CutPrefix(written, "--no-"); negated && p.known[name] != nil && p.known[name].value.bare != "" {
		return program.WithHint(err, "did you mean --"+name+"=false?")
	}
	candidates, rarely := []string{"--help-all"}, []string{}
	for name, f := range p.known {
		switch {
		case len(name) == 1 || f.is.has(risky):
		case f.isHidden():
			rarely = append(rarely, "--"+name)
		default:
			candidates = append(candidates, "--"+name)
		}
	}
	return program.Suggest(err, written, candidates, rarely...)
}

func unknownCommand(words []string, word string, commands []*command) error {
	var names []string
	for _, c := range commands {
		if !strings.ContainsAny(word, "/.") { // which is a path, not a mistyped command
			names = append(names, c.name)
		}
	}
	of := ""
	if len(words) > 0 {
		of = " of " + strings.Join(words, " ")
	}
	return commandLine{words: words}.withUsageHint(program.Suggest(fmt.Errorf("unknown command %q%s", word, of), word, names))
}

// variables are the environment variables of a flag, the first one counts. DEPLOYER_VERSION doesn't stand for a chart's
// --version: scripts that install deployer use it. A variable that is set for upgrade isn't meant for template, so flags
// without effect have none.
func (f *flag) variables() []string {
	names := strings.Fields(f.env)
	if f.is.has(noVariable) || f.isHidden() {
		return names
	}
	return append([]string{"DEPLOYER_" + strings.ToUpper(strings.ReplaceAll(f.name, "-", "_"))}, names...)
}

// readEnvironment gives flags that aren't on the command line the values of their variables. It returns all that can't be
// read. Of Helm's, Helm silently uses the default, for example for HELM_DEBUG=yes, and old jobs rely on that.
func (e *env) readEnvironment(flags []*flag) []error {
	var problems []error
	for _, f := range flags {
		if e.call.hasFlag(f.name) {
			continue
		}
		for _, name := range f.variables() {
			text := os.Getenv(name)
			if text == "" {
				continue
			}
			set := f.value.set
			if f.value.fromEnv != nil {
				set = f.value.fromEnv
			}
			err := set(text)
			if err != nil && strings.HasPrefix(name, "HELM_") {
				e.warn(fmt.Sprintf("%s=%s is not a valid value and has no effect", name, text))
				continue
			}
			if err != nil {
				problems = append(problems, usagef("%s: %w", name, err))
			}
			f.given = true
			break
		}
	}
	return problems
}

// useFlags gives flags with an attribute what an unfinished or wrong command line and their variables say. What can't be
// read counts as not there.
func (e *env) useFlags(flags []*flag, one attribute) {
	flags = slices.DeleteFunc(slices.Clone(flags), func(f *flag) bool { return !f.is.has(one) || f.isHidden() })
	_ = e.readEnvironment(flags)
	for _, given := range e.call.flags {
		if slices.Contains(flags, given.flag) {
			_ = given.flag.value.set(given.value)
		}
	}
	_ = checkFlags(flags)
}

// checkFlags checks what depends on several flags.
func checkFlags(flags []*flag) (problems []error) {
	for _, f := range flags {
		if f.value.check != nil {
			problems = append(problems, f.value.check())
		}
	}
	return problems
}

// warnOfMisspelt warns of variables that are one letter away from one of a flag of any command.
func (e *env) warnOfMisspelt(environment []string) {
	const prefix = "DEPLOYER_"
	environment = slices.DeleteFunc(slices.Clone(environment), func(variable string) bool { return !strings.HasPrefix(variable, prefix) })
	if len(environment) == 0 {
		return // most runs have none, and needn't look at the flags of all commands
	}
	var known []string
	for _, f := range allFlags(e.commands) {
		for _, name := range f.variables() {
			known = append(known, strings.TrimPrefix(name, prefix))
		}
	}
	for _, variable := range environment {
		name, value, _ := strings.Cut(strings.TrimPrefix(variable, prefix), "=")
		if value == "" || name == "VERSION" || slices.Contains(known, name) {
			continue
		}
		if similar := program.Similar(name, nil, known...); similar != "" {
			e.warn(fmt.Sprintf("the variable %s%s has no effect: did you mean %s%s?", prefix, name, prefix, similar))
		}
	}
}
