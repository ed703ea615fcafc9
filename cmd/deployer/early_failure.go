package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"deployer/internal/view/output"
	"deployer/internal/view/run"
)

// runCommands are the commands that report their end to programs: as the last event of -o json, as -o yaml, and in the files of
// --result-file and --report-junit.
var runCommands = []string{"install", "upgrade", "apply", "rollback", "uninstall", "test", "plan", "status"}

// givenFlag returns the last value of a flag on the command line as it was written, else that of its variable. It is for command lines that
// couldn't be read.
func (c *console) givenFlag(name, letter string) string {
	value := os.Getenv("DEPLOYER_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")))
	for i, word := range c.call.args {
		switch flag, attached, found := strings.Cut(word, "="); {
		case word == "--":
			return value
		case found && (flag == "--"+name || letter != "" && flag == "-"+letter):
			value = attached
		case (word == "--"+name || letter != "" && word == "-"+letter) && i+1 < len(c.call.args):
			value = c.call.args[i+1]
		case letter != "" && strings.HasPrefix(word, "-"+letter):
			value = word[len("-"+letter):]
		}
	}
	return value
}

// formatForPrograms returns JSON or YAML if the command reports its end in it; otherwise the table.
func (c *console) formatForPrograms() output.Format {
	words := strings.Fields(c.call.command)
	isRun := len(words) == 1 && slices.Contains(runCommands, words[0]) && (words[0] != "status" || slices.Contains(c.call.args, "--watch"))
	format := output.Format(c.givenFlag("output", "o"))
	if isRun && !c.call.asHelm && (format == output.FormatJSON || format == output.FormatYAML) {
		return format
	}
	return output.FormatTable
}

// reportEarlyFailure writes the documents of a run that failed before it began.
func (e *env) reportEarlyFailure(ctx context.Context, failure error) {
	format, result, junit := e.formatForPrograms(), e.givenFlag("result-file", ""), e.givenFlag("report-junit", "")
	if e.view != nil || e.planShown || errors.Is(failure, errChanges) || errors.As(failure, new(alreadyShown)) || format == output.FormatTable && result == "" && junit == "" {
		return
	}
	if words := strings.Fields(e.call.command); len(words) != 1 || !slices.Contains(runCommands, words[0]) {
		return
	}
	writable := func(file string) string {
		if run.CheckWritable(file) != nil {
			return ""
		}
		return file
	}
	e.view = run.New(e.streams, run.Options{
		Format: format, Progress: "none", Colour: e.colour, ResultFile: writable(result), JUnitFile: writable(junit), Hidden: e.hidden,
		ExitCode: func(err error) int { return e.exitCode(ctx, err) },
	})
	for _, text := range e.earlyWarnings {
		e.view.Warn(text)
	}
	if e.cluster != nil {
		failure = withAccountHint(failure)
	}
	_ = e.view.Close(failure) // what can't be written ends with the failure's code
}
