package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"deployer/internal/lazyregexp"
	"deployer/internal/view/textfmt"
)

// A helpPage is the help of a command: what it does and how, examples, its commands or flags, the flags
// that every command has, exit codes. The page of the program has no more than a usage and groups.
type helpPage struct {
	usage, line, aliases, steps, examples string
	groups                                []string // titled lists, laid out
	codes, footer                         string
}

// text is the page as it is printed, with an empty line between its parts.
func (p helpPage) text() string {
	line := "Usage: " + p.line
	if p.aliases != "" {
		line += "\nAlso:  " + p.aliases
	}
	end := strings.TrimLeft(p.codes+"\n"+p.footer, "\n")
	parts := slices.Concat([]string{p.usage, line, p.steps, p.examples}, p.groups, []string{end})
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "\n\n") + "\n"
}

func helpCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "help", Usage: "show help for a command", ArgsUsage: "[COMMAND...]",
		Description: `Examples:
  deployer help
  deployer help repo add

Exit codes: 0 done; 1 there is no such command`,
		Action: func(c *cli.Context) error { return e.printHelp(c.App, c.Args().Slice(), false) },
	}
}

// showHelp is the action of a command that only has subcommands.
func showHelp(e *env) cli.ActionFunc {
	return func(c *cli.Context) error { return e.printHelp(c.App, strings.Fields(e.call.command), false) }
}

// printHelp writes the help of the command that words name; brief leaves out rare flags.
func (e *env) printHelp(app *cli.App, words []string, brief bool) error {
	ps := e.plugins()
	for _, p := range ps.callable(app.Commands) {
		app.Commands = append(app.Commands, ps.command(p))
	}
	text, err := e.call.helpText(app, words, min(e.streams.Width, 100), brief)
	if err != nil {
		return err
	}
	return printTo(e.streams.Out, text)
}

// helpText lays out the help of the command that words name, for a width in cells.
func (c call) helpText(app *cli.App, words []string, width int, brief bool) (string, error) {
	commands, path := app.Commands, []string{c.name}
	var command *cli.Command
	for _, word := range words {
		if command = commandNamed(commands, word); command == nil {
			return "", unknownCommand(path[1:], word, commands)
		}
		path = append(path, command.Name)
		commands = command.Subcommands
	}
	line := strings.Join(path, " ")
	p := helpPage{usage: app.Usage, line: line + " COMMAND [flags] [arguments]", footer: line + " COMMAND --help tells more about a command."}
	switch {
	case command == nil:
		p.groups = layOutGroups(app.Commands, width)
	case len(command.Subcommands) > 0:
		p.usage = command.Usage
		p.groups = []string{"Commands:\n" + commandRows(command.Subcommands, width)}
	default:
		p = commandPage(command, line, width)
		p.steps, p.examples = c.underCalledName(p.steps), c.underCalledName(p.examples)
		p.footer = "The environment can set each flag: --kube-context as DEPLOYER_KUBE_CONTEXT."
		if brief {
			p.steps, p.codes, p.groups = "", "", p.groups[:min(1, len(p.groups))]
			p.footer = "For all flags, run: " + line + " --help"
		}
	}
	p.usage = textfmt.Capitalized(p.usage) + "."
	return p.text(), nil
}

func commandPage(c *cli.Command, line string, width int) helpPage {
	p := helpPage{usage: c.Usage, line: strings.TrimRight(line+" [flags] "+c.ArgsUsage, " "), aliases: strings.Join(c.Aliases, ", ")}
	p.steps, p.examples, p.codes = sections(c.Description)
	p.codes = strings.Join(textfmt.WrapWords(p.codes, width), "\n")
	var titles []string
	byTitle := map[string][]cli.Flag{}
	add := func(title string, f cli.Flag) {
		if byTitle[title] == nil {
			titles = append(titles, title)
		}
		byTitle[title] = append(byTitle[title], f)
	}
	common, others := commonFlags(c.Flags), ""
	if len(common) > 0 {
		others = "Other"
	}
	for _, f := range common {
		add(commonCategory, f)
	}
	for _, f := range c.Flags {
		if !isHidden(f) && !slices.Contains(common, f) {
			add(cmp.Or(categoryOf(f), others), f)
		}
	}
	slices.SortStableFunc(titles, func(a, b string) int { return cmp.Compare(rankOf(a), rankOf(b)) })
	for _, title := range titles {
		heading := textfmt.Capitalized(strings.TrimSpace(title + " flags"))
		p.groups = append(p.groups, heading+":\n"+flagRows(byTitle[title], width))
	}
	return p
}

// ownCommand matches this program's command lines in descriptions.
var ownCommand = lazyregexp.New(`\bdeployer ([a-z-]+)`)

// underCalledName replaces deployer in a description by the name that the program was called
// by.
func (c call) underCalledName(description string) string {
	return ownCommand().ReplaceAllString(description, c.name+" $1")
}

// exitCodesHeading is the heading of a command's exit codes, the last part of its description.
const exitCodesHeading = "Exit codes:"

// sections cuts a description into what the command does, its examples and
// its exit codes.
func sections(description string) (steps, examples, codes string) {
	rest, codes, found := strings.Cut("\n"+description, "\n"+exitCodesHeading)
	if found {
		codes = exitCodesHeading + codes
	}
	steps, examples, found = strings.Cut(rest, "\nExamples:")
	if found {
		examples = "Examples:" + examples
	}
	return strings.TrimSpace(steps), strings.TrimRight(examples, "\n "), strings.TrimSpace(codes)
}

// commonCategory is the group of the flags that a page with many flags begins with.
const commonCategory = "Common"

// commonFlagNames are the flags that most command lines have, in the order of the help.
var commonFlagNames = []string{
	"install", "rollback", "uninstall", "drift", "out", "digest", "identity", "revision", "watch", "show-resources", "show-only",
	"namespace", "create-namespace", "values", "set", "version", "atomic", "timeout", "dry-run", "detailed-exitcode", "output",
}

// commonFlags picks the common ones of so many flags that they don't fit a screen.
func commonFlags(flags []cli.Flag) []cli.Flag {
	const maxOnScreen = 40 // with the global ones
	var visible, common []cli.Flag
	for _, f := range flags {
		if !isHidden(f) {
			visible = append(visible, f)
		}
	}
	if len(visible) <= maxOnScreen {
		return nil
	}
	for _, name := range commonFlagNames {
		if i := slices.IndexFunc(visible, func(f cli.Flag) bool { return f.Names()[0] == name }); i >= 0 {
			common = append(common, visible[i])
		}
	}
	return common
}

func categoryOf(f cli.Flag) string { return f.(cli.CategorizableFlag).GetCategory() }

// rankOf puts a command's own flags first and everybody's last.
func rankOf(category string) int {
	switch category {
	case "", commonCategory:
		return 0
	case globalCategory:
		return 2
	}
	return 1
}

// layOutGroups lays out commands, those of a group after one another, under the titles of their groups.
func layOutGroups(commands []*cli.Command, width int) []string {
	var out []string
	for len(commands) > 0 {
		title := commands[0].Category
		end := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.Category != title })
		if end < 0 {
			end = len(commands)
		}
		out = append(out, title+":\n"+commandRows(commands[:end], width))
		commands = commands[end:]
	}
	return out
}
