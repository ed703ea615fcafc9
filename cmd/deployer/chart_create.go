package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"deployer/chart/develop"
)

func createCommand(e *env) *cli.Command {
	var starter string
	return &cli.Command{
		Name: "create", Usage: "create a new chart", ArgsUsage: "NAME",
		Description: `Creates a directory with the files of an example chart that you can deploy as it
is. It overwrites files of the same names and keeps others.

Examples:
  deployer create web
  deployer create charts/web --starter company`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "starter", Aliases: []string{"p"}, Usage: "name or absolute `PATH` of the starter to copy", Destination: &starter},
		},
		Action: action(1, 1, "the name of the chart", func(_ context.Context, args []string) error {
			if err := printTo(e.streams.Out, "Creating "+args[0]+"\n"); err != nil {
				return err
			}
			warnings, err := develop.Create(args[0], starter)
			for _, w := range warnings {
				// To standard output, as Helm does.
				if err := printTo(e.streams.Out, w+"\n"); err != nil {
					return err
				}
			}
			return err
		}),
	}
}
