package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"deployer/internal/lazyregexp"
	"deployer/internal/view/textfmt"
)

func commandRows(commands []*cli.Command, width int) string {
	var rows [][2]string
	for _, c := range commands {
		if !c.Hidden {
			usage := c.Usage
			if len(c.Aliases) > 0 {
				usage += " (also " + strings.Join(c.Aliases, ", ") + ")"
			}
			rows = append(rows, [2]string{c.Name, usage})
		}
	}
	return layOutRows(rows, width)
}

func flagRows(flags []cli.Flag, width int) string {
	var rows [][2]string
	for _, f := range flags {
		rows = append(rows, [2]string{label(f), describe(f)})
	}
	return layOutRows(rows, width)
}

// label is a flag as it is written: "-n, --namespace TEXT".
func label(f cli.Flag) string {
	short, names := "    ", f.Names()
	if i := slices.IndexFunc(names, func(name string) bool { return len(name) == 1 }); i >= 0 {
		short = "-" + names[i] + ", "
	}
	return short + "--" + names[0] + valueName(f)
}

// quotedName is the name of a flag's value where its usage has one in backquotes.
var quotedName = lazyregexp.New("`([^`]+)`")

// usageOf is a flag's usage without the backquotes.
func usageOf(f cli.Flag) string {
	return quotedName().ReplaceAllString(f.(cli.DocGenerationFlag).GetUsage(), "$1")
}

// valueName says what kind of value a flag takes.
func valueName(f cli.Flag) string {
	if m := quotedName().FindStringSubmatch(f.(cli.DocGenerationFlag).GetUsage()); m != nil {
		return " " + m[1]
	}
	switch f := f.(type) {
	case *cli.BoolFlag:
		return ""
	case *cli.IntFlag, *cli.UintFlag:
		return " N"
	case *cli.DurationFlag:
		return " DURATION"
	case *cli.GenericFlag:
		switch v := f.Value.(type) {
		case *choice:
			if v.bare != "" {
				return "[=" + strings.Join(v.words, "|") + "]"
			}
			return " MODE"
		case *float32Value, *optionalNumber:
			return " N"
		}
		return " VALUE"
	}
	return " TEXT"
}

// describe is a flag's usage, with its other names and its default.
func describe(f cli.Flag) string {
	text := usageOf(f)
	var also []string
	for _, n := range f.Names()[1:] {
		if len(n) > 1 {
			also = append(also, "--"+n)
		}
	}
	if len(also) > 0 {
		text += " (also " + strings.Join(also, ", ") + ")"
	}
	if value := defaultOf(f); !slices.Contains([]string{"", "0", "false", "0s"}, value) {
		text += " (default " + value + ")"
	}
	return text
}

func defaultOf(f cli.Flag) string {
	switch f := f.(type) {
	case *cli.BoolFlag:
		return fmt.Sprint(f.Value)
	case *cli.GenericFlag:
		if c, ok := f.Value.(*choice); ok && c.bare == "" && c.chosen == "" {
			return c.words[0] // what the zero value means
		}
	}
	return f.(cli.DocGenerationFlag).GetValue()
}

// layOutRows writes rows of a name and a text in two columns. A name too long for
// its column has the text below it.
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
