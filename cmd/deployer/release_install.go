package main

import (
	"context"
	"errors"
	"time"

	"github.com/urfave/cli/v2"

	"deployer/chart"
	"deployer/internal/deploy"
)

func installCommand(e *env) *cli.Command {
	o := &upgradeOptions{operationFlags: operationFlags{failurePrefix: installFailed}}
	return &cli.Command{
		Name: "install", Usage: "deploy a chart as a new release", ArgsUsage: "[NAME] CHART",
		Description: `Does the same as upgrade --install, but fails if the name is in use.

Examples:
  deployer install web ./chart -n prod --create-namespace
  deployer install ./chart --generate-name

Exit codes: the same as upgrade's`,
		Flags: append(o.flags(e),
			&cli.BoolFlag{Name: "replace", Category: "Release", Usage: "reuse the name of an uninstalled release whose history was kept", Destination: &o.request.Replace},
			&cli.BoolFlag{Name: "generate-name", Aliases: []string{"g"}, Category: "Release", Usage: "generate the release name from the chart's name and the time", Destination: &o.generateName},
			&cli.StringFlag{Name: "name-template", Category: "Release", Usage: "Go `TEMPLATE` for the release name", Destination: &o.nameTemplate},
		),
		Action: action(1, 2, "a release name and a chart", func(ctx context.Context, args []string) error {
			name, ref, err := nameAndChart(args, o.generateName, o.nameTemplate)
			if err != nil {
				return withPrefix(installFailed, &usageError{err: err, command: "install"})
			}
			o.request.Install = deploy.InstallOnly
			return o.run(ctx, e, name, ref)
		}),
	}
}

// nameAndChart reads "[NAME] CHART" with the flags that make names, by Helm's
// rules. (helm.sh/helm/v3/pkg/action/install.go, NameAndChart)
func nameAndChart(args []string, generate bool, nameTemplate string) (name, ref string, err error) {
	ref = args[len(args)-1]
	switch named := len(args) == 2; {
	case named && generate:
		return "", "", errors.New("cannot set --generate-name and also specify a name")
	case named && nameTemplate != "":
		return "", "", errors.New("cannot set --name-template and also specify a name")
	case named:
		return args[0], ref, nil
	case nameTemplate != "":
		name, err = chart.ReleaseNameFromTemplate(nameTemplate)
		return name, ref, err
	case generate:
		return chart.GenerateReleaseName(ref, time.Now()), ref, nil
	}
	return "", "", errors.New("must either provide a name or specify --generate-name")
}
