package main

import (
	"context"
	"fmt"
	"path/filepath"

	"deployer/chart"
	"deployer/chart/develop"
	"deployer/internal/view/output"
)

func dependencyCommand(e *env) *command {
	return &command{
		name: "dependency", also: "dep dependencies", usage: "manage the dependencies of a chart",
		commands: []*command{dependencyList(e), dependencyUpdate(e), dependencyBuild(e)},
	}
}

func dependencyList(e *env) *command {
	var width uint
	return &command{
		name: "list", also: "ls", usage: "list the dependencies of a chart and whether charts/ has them", args: "[CHART]", takes: "a chart", complete: "DIR",
		examples: "deployer dependency list ./chart",
		codes:    "0 done, even if some are missing; 1 failed",
		flags: []*flag{
			{name: "max-col-width", usage: "maximum width of a column, in characters", is: usual | safe, value: count(&width, 80)},
			outputFlag(e),
		},
		action: func(_ context.Context, args []string) error {
			path := chartDirectory(args)
			found, warnings, err := develop.Dependencies(path)
			if err != nil {
				return err
			}
			if e.format != output.FormatTable {
				for _, w := range warnings {
					e.warn(w)
				}
				return output.Encode(e.streams.Out, e.format, append([]develop.Dependency{}, found...))
			}
			if found == nil {
				return printTo(e.streams.Out, fmt.Sprintf("WARNING: no dependencies at %s\n", filepath.Join(path, "charts")))
			}
			rows := [][]string{{"NAME", "VERSION", "REPOSITORY", "STATUS"}}
			for _, d := range found {
				rows = append(rows, []string{d.Name, d.Version, d.Repository, d.Status})
			}
			if err := output.Table(e.streams.Out, nil, output.ClipCells(rows, int(width))); err != nil {
				return err
			}
			text := "\n"
			for _, w := range warnings {
				text += "WARNING: " + w + "\n"
			}
			return printTo(e.streams.Out, text)
		},
	}
}

func dependencyUpdate(e *env) *command {
	return dependencyFill(e, &command{
		name: "update", is: changes, also: "up", usage: "download the dependencies in Chart.yaml into charts/ and write Chart.lock",
		steps: `1. Refreshes the indexes of all repositories, unless you give --skip-refresh.
2. Picks the newest version that each entry in Chart.yaml allows.
3. Downloads the charts into charts/, deletes the versions that they replace,
   and writes Chart.lock.`,
		examples: "deployer dependency update ./chart",
	}, chart.UpdateDependencies)
}

func dependencyBuild(e *env) *command {
	return dependencyFill(e, &command{
		name: "build", is: changes, usage: "download the versions in Chart.lock into charts/",
		steps:    `Without Chart.lock it does the same as update.`,
		examples: "deployer dependency build ./chart",
		codes:    "0 done; 1 failed, or Chart.lock does not match Chart.yaml",
	}, chart.BuildDependencies)
}

func dependencyFill(e *env, c *command, fill func(context.Context, string, chart.DependencyOptions) error) *command {
	var o chart.DependencyOptions
	c.args, c.takes, c.complete = "[CHART]", "a chart", "DIR"
	c.flags = append([]*flag{
		{name: "verify", usage: "verify the signatures of the charts", is: rare | safe, value: toggle(&o.Verify)},
		keyringFlag(&o.Keyring),
		allowMismatchFlag(&o.AllowMismatch),
		{name: "skip-refresh", usage: "don't refresh the repository indexes first", is: usual | safe, value: toggle(&o.SkipRefresh)},
	}, accessFlags(&o.Access)...)
	c.action = func(ctx context.Context, args []string) error {
		path := chartDirectory(args)
		waiting := e.showTransfer("fetching the dependencies of", path)
		defer waiting.Stop()
		o.Settings, o.Out, o.Log = e.files, waiting.Through(e.streams.Out), waiting.Through(e.streams.Err)
		return fill(ctx, path, o)
	}
	return c
}

// chartDirectory is the only argument, or the current directory.
func chartDirectory(args []string) string {
	if len(args) == 0 {
		return "."
	}
	return filepath.Clean(args[0])
}
