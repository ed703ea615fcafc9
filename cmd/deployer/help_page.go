package main

import (
	"cmp"
	"slices"
	"strings"
	"text/template"

	"github.com/urfave/cli/v2"

	"deployer/internal/lazyregexp"
	"deployer/internal/view/textfmt"
)

// helpTemplate is the page of a command: what it does and how, examples, its commands or flags, the
// flags that every command has, exit codes. The page of the program has no more than a usage and groups.
const helpTemplate = `{{.Usage}}

Usage: {{.Line}}
{{- with .Aliases}}
Also:  {{.}}
{{- end}}
{{- with .Steps}}

{{.}}
{{- end}}
{{- with .Examples}}

{{.}}
{{- end}}
{{- range .Groups}}

{{.Title}}:
{{.Body}}
{{- end}}

{{with .Codes}}{{.}}
{{end}}{{.Footer}}
`

// A page is what helpTemplate is given.
type page struct {
	Usage, Line, Aliases, Steps, Examples, Codes, Footer string
	Groups                                               []group
}

// A group is a titled list, laid out.
type group struct{ Title, Body string }

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
	return func(c *cli.Context) error {
		words := strings.Fields(commandPath(c))
		if c.Command.Name == c.App.Name {
			words = nil
		}
		return e.printHelp(c.App, words, false)
	}
}

// printHelp writes the help of the command that words name; brief is without what is rare.
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
	p := page{Usage: app.Usage, Line: line + " COMMAND [flags] [arguments]", Footer: line + " COMMAND --help tells more about a command."}
	switch {
	case command == nil:
		p.Groups = layOutGroups(app.Commands, width)
	case len(command.Subcommands) > 0:
		p.Usage = command.Usage
		p.Groups = []group{{Title: "Commands", Body: commandRows(command.Subcommands, width)}}
	default:
		p = commandPage(command, line, width)
		p.Steps, p.Examples = c.underCalledName(p.Steps), c.underCalledName(p.Examples)
		p.Footer = "The environment can set each flag: --kube-context as DEPLOYER_KUBE_CONTEXT."
		if brief {
			p.Steps, p.Codes, p.Groups = "", "", p.Groups[:min(1, len(p.Groups))]
			p.Footer = "For all flags, run: " + line + " --help"
		}
	}
	p.Usage = textfmt.Capitalized(p.Usage) + "."
	var out strings.Builder
	if err := template.Must(template.New("help").Parse(helpTemplate)).Execute(&out, p); err != nil {
		return "", err
	}
	return out.String(), nil
}

func commandPage(c *cli.Command, line string, width int) page {
	p := page{Usage: c.Usage, Line: strings.TrimRight(line+" [flags] "+c.ArgsUsage, " "), Aliases: strings.Join(c.Aliases, ", ")}
	p.Steps, p.Examples, p.Codes = sections(c.Description)
	p.Codes = strings.Join(wrap(p.Codes, width), "\n")
	var titles []string
	byTitle := map[string][]cli.Flag{}
	common := commonFlags(c.Flags)
	if len(common) > 0 {
		titles, byTitle[commonCategory] = []string{commonCategory}, common
	}
	for _, f := range c.Flags {
		if isHidden(f) || slices.Contains(common, f) {
			continue
		}
		title := categoryOf(f)
		if title == "" && len(common) > 0 {
			title = "Other"
		}
		if !slices.Contains(titles, title) {
			titles = append(titles, title)
		}
		byTitle[title] = append(byTitle[title], f)
	}
	slices.SortStableFunc(titles, func(a, b string) int { return cmp.Compare(rankOf(a), rankOf(b)) })
	for _, t := range titles {
		title := t + " flags"
		if t == "" {
			title = "Flags"
		}
		p.Groups = append(p.Groups, group{Title: title, Body: flagRows(byTitle[t], width)})
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

// exitCodes is the heading of a command's exit codes, the last part of its description.
const exitCodes = "Exit codes:"

// sections cuts a description into what the command does, its examples and
// its exit codes.
func sections(description string) (steps, examples, codes string) {
	rest, codes, found := cutAtHeading(description, exitCodes)
	if found {
		codes = exitCodes + codes
	}
	steps, examples, found = cutAtHeading(rest, "Examples:")
	if found {
		examples = "Examples:" + examples
	}
	return strings.TrimSpace(steps), strings.TrimRight(examples, "\n "), strings.TrimSpace(codes)
}

func cutAtHeading(text, at string) (before, after string, found bool) {
	if strings.HasPrefix(text, at) {
		return "", text[len(at):], true
	}
	return strings.Cut(text, "\n"+at)
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
	const most = 40 // with the global ones
	var visible, common []cli.Flag
	for _, f := range flags {
		if !isHidden(f) {
			visible = append(visible, f)
		}
	}
	if len(visible) <= most {
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
func layOutGroups(commands []*cli.Command, width int) []group {
	var out []group
	for len(commands) > 0 {
		title := commands[0].Category
		end := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.Category != title })
		if end < 0 {
			end = len(commands)
		}
		out = append(out, group{Title: title, Body: commandRows(commands[:end], width)})
		commands = commands[end:]
	}
	return out
}
