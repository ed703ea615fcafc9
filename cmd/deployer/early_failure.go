package main

import (
	"context"
	"errors"
	"os"
	"slices"

	"deployer/internal/view/output"
	"deployer/internal/view/run"
)

// givenValue returns the last value of a flag on the command line, else that of its variables.
func (c *console) givenValue(name string) string {
	for _, given := range slices.Backward(c.call.flags) {
		if given.flag.name == name {
			return given.value
		}
	}
	if f := flagTable(c.call.leaf.flags)[name]; f != nil {
		for _, variable := range f.variables() {
			if value := os.Getenv(variable); value != "" {
				return value
			}
		}
	}
	return ""
}

// reportsEnd reports whether the command tells programs how it ended.
func (c *console) reportsEnd() bool {
	return c.call.leaf != nil && c.call.leaf.is.has(reports) && (c.call.leaf.name != "status" || c.call.hasFlag("watch"))
}

// formatForPrograms returns JSON or YAML if the command reports its end in it; otherwise the table.
func (c *console) formatForPrograms() output.Format {
	if c.reportsEnd() && !c.call.asHelm {
		if format := output.Format(c.givenValue("output")); format == output.FormatJSON || format == output.FormatYAML {
			return format
		}
	}
	return output.FormatTable
}

// reportEarlyFailure writes the documents of a run that failed before it began.
func (e *env) reportEarlyFailure(ctx context.Context, failure error) {
	if e.call.leaf == nil || !e.call.leaf.is.has(reports) {
		return
	}
	format, result, junit := e.formatForPrograms(), e.givenValue("result-file"), e.givenValue("report-junit")
	if e.view != nil || e.planShown || errors.Is(failure, errChanges) || errors.As(failure, new(alreadyShown)) || format == output.FormatTable && result == "" && junit == "" {
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
	e.releaseWarnings(e.view.Warn)
	if e.cluster != nil {
		failure = withAccountHint(failure)
	}
	_ = e.view.Close(failure) // what can't be written ends with the failure's code
}
