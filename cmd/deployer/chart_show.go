package main

import (
	"context"
	"fmt"

	"deployer/chart"
	"deployer/chart/develop"
	"deployer/chart/repository"
	"deployer/internal/view/output"
)

func showCommand(e *env) *command {
	return &command{
		name: "show", also: "inspect", usage: "show information about a chart",
		commands: []*command{
			showPart(e, develop.All, "all of a chart: Chart.yaml, values, readme and CRDs"),
			showPart(e, develop.Chart, "Chart.yaml"),
			showPart(e, develop.Values, "values.yaml"),
			showPart(e, develop.Readme, "the readme file"),
			showPart(e, develop.CRDs, "the CustomResourceDefinitions in crds/"),
		},
	}
}

func showPart(e *env, part develop.Part, usage string) *command {
	var o chart.LoadOptions
	var path string
	flags := append(locateFlags(&o), outputFlag(e))
	if part == develop.Values {
		flags = append(flags, &flag{name: "jsonpath", usage: "JSONPath `EXPRESSION` that selects from the values", is: usual | safe, value: text(&path)})
	}
	return &command{
		name: string(part), usage: "show " + usage, args: "CHART", takes: "a chart",
		steps:    "CHART is a directory, an archive, a URL, REPO/NAME or oci://REGISTRY/NAME.",
		examples: fmt.Sprintf("deployer show %s bitnami/nginx --version ^18", part),
		flags:    flags,
		action: func(ctx context.Context, args []string) error {
			if e.format != output.FormatTable && path != "" {
				return usagef("--jsonpath and --output can't be combined")
			}
			o.ForInspection = true
			loaded, err := e.loadChart(ctx, args[0], o)
			if err != nil {
				return err
			}
			for _, w := range loaded.Warnings {
				e.warn(w)
			}
			if e.format != output.FormatTable {
				document, err := develop.Document(loaded.Helm, part)
				if err != nil {
					return err
				}
				return output.Encode(e.streams.Out, e.format, document)
			}
			text, err := develop.Show(loaded.Helm, part, path)
			if err != nil {
				return err
			}
			if part == develop.Values {
				return printTo(e.streams.Data(), text)
			}
			return printTo(e.streams.Out, text)
		},
	}
}

func verifyCommand(e *env) *command {
	var keyring string
	return &command{
		name: "verify", usage: "verify the signature of a chart archive", args: "ARCHIVE", takes: "a chart archive",
		steps:    `Verifies the archive with the .prov file beside it, and that file with the keys.`,
		examples: "deployer verify web-1.2.0.tgz --keyring pubring.gpg",
		codes:    "0 signed by one of the keys; 1 not signed by any, or failed",
		flags:    []*flag{keyringFlag(&keyring)},
		action: func(_ context.Context, args []string) error {
			signature, err := repository.Verify(args[0], keyring)
			if err != nil {
				return err
			}
			return printTo(e.streams.Out, signature)
		},
	}
}
