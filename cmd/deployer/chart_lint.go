package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"deployer/chart"
	"deployer/chart/develop"
)

func lintCommand(e *env) *cli.Command {
	var request chartRequest
	var o develop.LintOptions
	var subcharts, quiet bool
	return &cli.Command{
		Name: "lint", Usage: "check charts for mistakes", ArgsUsage: "[PATH...]",
		Description: `Reads and renders each chart, and reports what makes an installation fail
(ERROR), what breaks a convention (WARNING), and what could be better (INFO). It
needs no cluster.

Examples:
  deployer lint ./chart --strict
  deployer lint ./chart --with-subcharts -f values.yaml

Exit codes: 0 no errors; 1 errors, or with --strict warnings`,
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "strict", Usage: "treat warnings as failures", Destination: &o.Strict},
			&cli.BoolFlag{Name: "with-subcharts", Usage: "also check the charts in charts/", Destination: &subcharts},
			&cli.BoolFlag{Name: "quiet", Usage: "print only warnings and errors", Destination: &quiet},
			skipSchemaFlag("", &o.SkipSchema),
			&cli.StringFlag{Name: "kube-version", Usage: "Kubernetes `VERSION` for capabilities and deprecations", Destination: &o.Kubernetes},
		}, request.valueFlags()...),
		Action: action(0, -1, "", func(ctx context.Context, paths []string) error {
			if len(paths) == 0 {
				paths = []string{"."}
			}
			if subcharts {
				for _, p := range paths {
					paths = append(paths, develop.Subcharts(p)...)
				}
			}
			values, err := chart.Values(ctx, request.sources, chart.ValuesOptions{Stdin: e.streams.In, Settings: e.helmFiles()})
			if err != nil {
				return err
			}
			e.hideValues(values)
			o.Namespace = e.offlineNamespace()
			return lint(ctx, e, paths, values, o, quiet)
		}),
	}
}

// lint reports on each chart in Helm's words, and at the end how many failed.
func lint(ctx context.Context, e *env, paths []string, values map[string]any, o develop.LintOptions, quiet bool) error {
	text, failed, notable := "", 0, false
	for _, path := range paths {
		report, err := develop.Lint(ctx, path, values, o)
		if err != nil {
			return err
		}
		e.hideValues(report.Defaults...)
		lines := report.Messages
		if quiet {
			lines = report.Notable
		}
		notable = notable || len(report.Notable) > 0
		if report.Failed {
			failed++
		}
		if quiet && len(lines) == 0 {
			continue
		}
		text += fmt.Sprintf("==> Linting %s\n", path)
		for _, line := range lines {
			text += e.hidden.Hide(line) + "\n"
		}
		text += "\n"
	}
	summary := fmt.Sprintf("%d chart(s) linted, %d chart(s) failed", len(paths), failed)
	if failed == 0 && (!quiet || notable) {
		text += summary + "\n"
	}
	if err := printTo(e.streams.Out, text); err != nil || failed == 0 {
		return err
	}
	return fmt.Errorf("%s", summary)
}
