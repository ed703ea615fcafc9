package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"deployer/chart"
	"deployer/chart/develop"
	"deployer/internal/view/output"
)

func dependencyCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "dependency", Aliases: []string{"dep", "dependencies"}, Usage: "manage the dependencies of a chart",
		Subcommands: []*cli.Command{dependencyList(e), dependencyUpdate(e), dependencyBuild(e)},
	}
}

func dependencyList(e *env) *cli.Command {
	var width uint
	return &cli.Command{
		Name: "list", Aliases: []string{"ls"}, Usage: "list the dependencies of a chart and whether charts/ has them", ArgsUsage: "[CHART]",
		Description: `Examples:
  deployer dependency list ./chart

Exit codes: 0 done, even if some are missing; 1 failed`,
		Flags: []cli.Flag{
			&cli.UintFlag{Name: "max-col-width", Value: 80, Usage: "maximum width of a column, in characters", Destination: &width},
			outputFlag(e),
		},
		Action: actionWithFormat(e, 0, 1, "a chart", func(_ context.Context, args []string, format output.Format) error {
			path := chartDirectory(args)
			found, warnings, err := develop.Dependencies(path)
			if err != nil {
				return err
			}
			if format != output.FormatTable {
				for _, w := range warnings {
					e.warn(w)
				}
				return output.Encode(e.streams.Out, format, append([]develop.Dependency{}, found...))
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
		}),
	}
}

func dependencyUpdate(e *env) *cli.Command {
	return dependencyFill(e, &cli.Command{
		Name: "update", Aliases: []string{"up"}, Usage: "download the dependencies in Chart.yaml into charts/ and write Chart.lock",
		Description: `1. Refreshes the indexes of all repositories, unless you give --skip-refresh.
2. Picks the newest version that each entry in Chart.yaml allows.
3. Downloads the charts into charts/, deletes the versions that they replace,
   and writes Chart.lock.

Examples:
  deployer dependency update ./chart`,
	}, chart.UpdateDependencies)
}

func dependencyBuild(e *env) *cli.Command {
	return dependencyFill(e, &cli.Command{
		Name: "build", Usage: "download the versions in Chart.lock into charts/",
		Description: `Without Chart.lock it does the same as update.

Examples:
  deployer dependency build ./chart

Exit codes: 0 done; 1 failed, or Chart.lock does not match Chart.yaml`,
	}, chart.BuildDependencies)
}

func dependencyFill(e *env, c *cli.Command, fill func(context.Context, string, chart.DependencyOptions) error) *cli.Command {
	var o chart.DependencyOptions
	c.ArgsUsage = "[CHART]"
	c.Flags = append([]cli.Flag{
		&cli.BoolFlag{Name: "verify", Usage: "verify the signatures of the charts", Destination: &o.Verify},
		keyringFlag(&o.Keyring),
		allowMismatchFlag(&o.AllowMismatch),
		&cli.BoolFlag{Name: "skip-refresh", Usage: "don't refresh the repository indexes first", Destination: &o.SkipRefresh},
	}, accessFlags(&o.Access)...)
	c.Action = action(0, 1, "a chart", func(ctx context.Context, args []string) error {
		path := chartDirectory(args)
		waiting := e.showTransfer("fetching the dependencies of", path)
		defer waiting.Stop()
		o.Settings, o.Out, o.Log = e.helmFiles(), waiting.Through(e.streams.Out), waiting.Through(e.streams.Err)
		return fill(ctx, path, o)
	})
	return c
}

// chartDirectory is the only argument, or the current directory.
func chartDirectory(args []string) string {
	if len(args) == 0 {
		return "."
	}
	return filepath.Clean(args[0])
}
