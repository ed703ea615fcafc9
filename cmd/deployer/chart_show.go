package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"deployer/chart"
	"deployer/chart/develop"
	"deployer/internal/view/output"
)

func showCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "show", Aliases: []string{"inspect"}, Usage: "show information about a chart",
		Subcommands: []*cli.Command{
			showPart(e, develop.All, "all of a chart: Chart.yaml, values, readme and CRDs"),
			showPart(e, develop.Chart, "Chart.yaml"),
			showPart(e, develop.Values, "values.yaml"),
			showPart(e, develop.Readme, "the readme file"),
			showPart(e, develop.CRDs, "the CustomResourceDefinitions in crds/"),
		},
	}
}

func showPart(e *env, part develop.Part, usage string) *cli.Command {
	var o chart.LoadOptions
	var path string
	flags := append(locateFlags(&o), outputFlag(e))
	if part == develop.Values {
		flags = append(flags, &cli.StringFlag{Name: "jsonpath", Usage: "JSONPath `EXPRESSION` that selects from the values", Destination: &path})
	}
	return &cli.Command{
		Name: string(part), Usage: "show " + usage, ArgsUsage: "CHART",
		Description: `CHART is a directory, an archive, a URL, REPO/NAME or oci://REGISTRY/NAME.

Examples:
  deployer show ` + string(part) + ` ./chart
  deployer show ` + string(part) + ` bitnami/nginx --version ^18`,
		Flags: flags,
		Action: actionWithFormat(e, 1, 1, "a chart", func(ctx context.Context, args []string, format output.Format) error {
			if format != output.FormatTable && path != "" {
				return usagef("show values", "--jsonpath and --output can't be combined")
			}
			o.ForInspection = true
			loaded, err := e.loadChart(ctx, args[0], o)
			if err != nil {
				return err
			}
			for _, w := range loaded.Warnings {
				e.warn(w)
			}
			if format != output.FormatTable {
				document, err := develop.Document(loaded.Helm, part)
				if err != nil {
					return err
				}
				return output.Encode(e.streams.Out, format, document)
			}
			text, err := develop.Show(loaded.Helm, part, path)
			if err != nil {
				return err
			}
			if part == develop.Values {
				return printTo(e.streams.Data(), text)
			}
			return printTo(e.streams.Out, text)
		}),
	}
}
