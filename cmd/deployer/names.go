package main

import (
	"errors"
	"time"

	"deployer/chart"
)

// nameAndChart reads "[NAME] CHART" with the flags that make names, by Helm's
// rules. (helm.sh/helm/v3/pkg/action/install.go, NameAndChart)
func nameAndChart(args []string, generate bool, nameTemplate string) (name, ref string, err error) {
	ref = args[len(args)-1]
	if len(args) == 2 {
		if generate {
			return "", "", errors.New("cannot set --generate-name and also specify a name")
		}
		if nameTemplate != "" {
			return "", "", errors.New("cannot set --name-template and also specify a name")
		}
		return args[0], ref, nil
	}
	switch {
	case nameTemplate != "":
		name, err = chart.ReleaseNameFromTemplate(nameTemplate)
		return name, ref, err
	case generate:
		return chart.GenerateReleaseName(ref, time.Now()), ref, nil
	}
	return "", "", errors.New("must either provide a name or specify --generate-name")
}
