package main

import (
	"context"
	"errors"
	"time"

	"deployer/chart"
	"deployer/internal/deploy"
)

func installCommand(e *env) *command {
	o := &upgradeOptions{operationFlags: operationFlags{failurePrefix: installFailed}}
	return &command{
		name: "install", is: changes | reports, usage: "deploy a chart as a new release", args: "[NAME] CHART", complete: "NEW CHART",
		steps: `Does the same as upgrade --install, but fails if the name is in use.`,
		examples: `deployer install web ./chart -n prod --create-namespace
deployer install ./chart --generate-name`,
		codes: "the same as upgrade's",
		flags: append(o.flags(e),
			&flag{name: "replace", group: "Release", usage: "reuse the name of an uninstalled release whose history was kept", is: rare | risky, value: toggle(&o.request.Replace)},
			&flag{name: "generate-name", also: "g", group: "Release", usage: "generate the release name from the chart's name and the time", is: usual | safe, value: toggle(&o.generateName)},
			&flag{name: "name-template", group: "Release", usage: "Go `TEMPLATE` for the release name", is: rare | safe, value: text(&o.nameTemplate)},
		),
		action: withArguments(1, 2, "a release name and a chart", func(ctx context.Context, args []string) error {
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
