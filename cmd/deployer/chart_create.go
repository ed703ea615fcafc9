package main

import (
	"context"

	"deployer/chart/develop"
)

func createCommand(e *env) *command {
	var starter string
	return &command{
		name: "create", is: changes, usage: "create a new chart", args: "NAME", complete: "DIR",
		steps: `Creates a directory with the files of an example chart that you can deploy as it
is. It overwrites files of the same names and keeps others.`,
		examples: `deployer create web
deployer create charts/web --starter company`,
		flags: []*flag{
			{name: "starter", also: "p", usage: "name or absolute `PATH` of the starter to copy", is: usual | safe, value: text(&starter)},
		},
		action: withArguments(1, 1, "the name of the chart", func(_ context.Context, args []string) error {
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
