package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"deployer/internal/lazyregexp"
	"deployer/internal/view/textfmt"
)

func helpCommand(e *env) *command {
	return &command{
		name: "help", usage: "show help for a command", args: "[COMMAND...]", complete: "COMMAND",
		examples: "deployer help\ndeployer help repo add",
		codes:    "0 done; 1 there is no such command",
		action: func(_ context.Context, args []string) error {
			return e.printHelp(args, usualHelp)
		},
	}
}

// printHelp writes the help of the command that words name.
func (e *env) printHelp(words []string, level helpLevel) error {
	commands := e.commands
	for _, p := range e.callablePlugins(commands) {
		commands = append(commands, e.commandOfPlugin(p))
	}
	text, err := e.call.helpText(commands, words, min(e.streams.Width, 100), level)
	if err != nil {
		return err
	}
	return printTo(e.streams.Out, text)
}

// helpText lays out the help of the command that words name, for a width in cells.
func (c call) helpText(commands []*command, words []string, width int, level helpLevel) (string, error) {
	shown, line := &command{commands: commands, usage: "deploy Helm charts with server-side apply and follow the rollout"}, c.name
	for i, word := range words {
		next := commandNamed(shown.commands, word)
		if next == nil {
			return "", unknownCommand(words[:i], word, shown.commands)
		}
		shown, line = next, line+" "+next.name
	}
	parts := []string{textfmt.Capitalized(shown.usage) + "."}
	if shown.action != nil {
		parts = append(parts, c.pageOf(shown, line, width, level)...)
	} else {
		parts = append(parts, "Usage: "+line+" COMMAND [flags] [arguments]")
		for _, g := range grouped(shown.commands, func(c *command) string { return cmp.Or(c.group, "Commands") }) {
			parts = append(parts, g.title+":\n"+commandRows(g.items, width))
		}
		parts = append(parts, line+" COMMAND --help tells more about a command.")
	}
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	return strings.Join(parts, "\n\n") + "\n", nil
}

// A helpGroup is what stands under a title in help.
type helpGroup[T any] struct {
	title string
	items []T
}

// grouped puts items of one title together, in the order of the titles' first ones.
func grouped[T any](items []T, titleOf func(T) string) []helpGroup[T] {
	var out []helpGroup[T]
	for _, item := range items {
		title := titleOf(item)
		i := slices.IndexFunc(out, func(g helpGroup[T]) bool { return g.title == title })
		if i < 0 {
			i, out = len(out), append(out, helpGroup[T]{title: title})
		}
		out[i].items = append(out[i].items, item)
	}
	return out
}

// pageOf are the parts of the help of a command that does something, after its first line.
func (c call) pageOf(command *command, line string, width int, level helpLevel) []string {
	usage := "Usage: " + strings.TrimRight(line+" [flags] "+command.args, " ")
	if command.also != "" {
		usage += "\nAlso:  " + strings.Join(command.names()[1:], ", ")
	}
	groups, left := flagGroups(command.flags, level)
	parts := []string{usage, c.underCalledName(command.steps), "Examples:\n  " + strings.ReplaceAll(strings.ReplaceAll(command.examples, "deployer", c.name), "\n", "\n  ")}
	if command.examples == "" {
		parts = parts[:2]
	}
	for _, g := range groups {
		parts = append(parts, textfmt.Capitalized(strings.TrimSpace(g.title+" flags"))+":\n"+flagRows(g.items, width))
	}
	if level == briefHelp {
		return append(slices.Delete(parts, 1, 2), "For all flags, run: "+line+" --help")
	}
	var end []string
	if command.codes != "" {
		end = textfmt.WrapWords("Exit codes: "+command.codes, width)
	}
	end = append(end, environmentNote)
	if left > 0 {
		end = append(end, fmt.Sprintf("For %d flags that are rarely needed, run: %s --help-all", left, line))
	}
	return append(parts, strings.Join(end, "\n"))
}

const environmentNote = "The environment can set each flag: --kube-context as DEPLOYER_KUBE_CONTEXT."

// The titles of two groups of flags.
const (
	commonGroup = "Common"
	globalGroup = "Global" // the flags that every command has
)

// flagGroups are the flags that help shows: a command's own first, and those that every command has last. left is how many
// others there are. So many flags that they don't fit a screen begin with those that most command lines have.
func flagGroups(flags []*flag, level helpLevel) (groups []helpGroup[*flag], left int) {
	const maxOnScreen = 40
	visible := slices.DeleteFunc(slices.Clone(flags), (*flag).isHidden)
	own := ""
	if len(visible) > maxOnScreen {
		own = "Other"
		slices.SortStableFunc(visible, func(a, b *flag) int { return cmp.Compare(b.is&common, a.is&common) })
	}
	groups = grouped(visible, func(f *flag) string {
		if own != "" && f.is.has(common) {
			return commonGroup
		}
		return cmp.Or(f.group, own)
	})
	rank := map[string]int{"": -1, commonGroup: -1, globalGroup: 1}
	slices.SortStableFunc(groups, func(a, b helpGroup[*flag]) int { return cmp.Compare(rank[a.title], rank[b.title]) })
	if level == briefHelp {
		return groups[:min(1, len(groups))], 0
	}
	if level == usualHelp {
		for i := range groups {
			groups[i].items = slices.DeleteFunc(groups[i].items, func(f *flag) bool { return f.is.has(rare) })
			left -= len(groups[i].items)
		}
		left += len(visible)
		groups = slices.DeleteFunc(groups, func(g helpGroup[*flag]) bool { return len(g.items) == 0 })
	}
	return groups, left
}

// ownCommand matches this program's command lines in descriptions.
var ownCommand = lazyregexp.New(`\bdeployer ([a-z-]+)`)

// underCalledName replaces deployer in a description by the name that the program was called by.
func (c call) underCalledName(description string) string {
	return ownCommand().ReplaceAllString(description, c.name+" $1")
}

func commandRows(commands []*command, width int) string {
	var rows [][2]string
	for _, c := range commands {
		usage := c.usage
		if c.also != "" {
			usage += " (also " + strings.Join(c.names()[1:], ", ") + ")"
		}
		rows = append(rows, [2]string{c.name, usage})
	}
	return layOutRows(rows, width)
}

func flagRows(flags []*flag, width int) string {
	var rows [][2]string
	for _, f := range flags {
		rows = append(rows, [2]string{f.label(), f.describe()})
	}
	return layOutRows(rows, width)
}

// label is a flag as it is written: "-n, --namespace TEXT".
func (f *flag) label() string {
	short := "    "
	for _, name := range f.names() {
		if len(name) == 1 {
			short = "-" + name + ", "
		}
	}
	return short + "--" + f.name + f.valueName()
}

// quotedName is the name of a flag's value where its usage has one in backquotes.
var quotedName = lazyregexp.New("`([^`]+)`")

// usageText is a flag's usage without the backquotes.
func (f *flag) usageText() string { return strings.ReplaceAll(f.usage, "`", "") }

// kind says what kind of value a flag takes; empty if none.
func (f *flag) kind() string {
	if m := quotedName().FindStringSubmatch(f.usage); m != nil {
		return m[1]
	}
	return f.value.kind
}

func (f *flag) valueName() string {
	switch kind := f.kind(); {
	case f.value.bare != "" && f.value.words != nil:
		return "[=" + strings.Join(f.value.words, "|") + "]"
	case f.value.bare != "" || kind == "":
		return ""
	default:
		return " " + kind
	}
}

// describe is a flag's usage, with its other names and its default.
func (f *flag) describe() string {
	text := f.usageText()
	var also []string
	for _, name := range f.names()[1:] {
		if len(name) > 1 {
			also = append(also, "--"+name)
		}
	}
	if len(also) > 0 {
		text += " (also " + strings.Join(also, ", ") + ")"
	}
	if !slices.Contains([]string{"", "0", "false", "0s"}, f.value.initial) {
		text += " (default " + f.value.initial + ")"
	}
	return text
}

// layOutRows writes rows of a name and a text in two columns. A name too long for its column has the text below it.
func layOutRows(rows [][2]string, width int) string {
	const maxColumn = 30
	column := 0
	for _, r := range rows {
		if n := utf8.RuneCountInString(r[0]); n <= maxColumn {
			column = max(column, n)
		}
	}
	var lines []string
	for _, r := range rows {
		name := r[0]
		if utf8.RuneCountInString(name) > column {
			lines = append(lines, "  "+name)
			name = ""
		}
		for _, line := range textfmt.WrapWords(r[1], max(width-column-4, 24)) {
			lines = append(lines, strings.TrimRight(fmt.Sprintf("  %-*s  %s", column, name, line), " "))
			name = ""
		}
	}
	return strings.Join(lines, "\n")
}
