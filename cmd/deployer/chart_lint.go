package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"deployer/chart"
	"deployer/chart/develop"
	"deployer/internal/view/output"
)

func lintCommand(e *env) *command {
	var request chartRequest
	var o develop.LintOptions
	var subcharts, quiet bool
	return &command{
		name: "lint", usage: "check charts for mistakes", args: "[PATH...]",
		steps: `Reads and renders each chart, and reports what makes an installation fail
(ERROR), what breaks a convention (WARNING), and what could be better (INFO). It
needs no cluster.`,
		examples: `deployer lint ./chart --strict
deployer lint ./chart --with-subcharts -f values.yaml`,
		codes: "0 no errors; 1 errors, or with --strict warnings",
		flags: append([]*flag{
			{name: "strict", usage: "treat warnings as failures", is: usual | safe, value: toggle(&o.Strict)},
			{name: "with-subcharts", usage: "also check the charts in charts/", is: usual | safe, value: toggle(&subcharts)},
			{name: "quiet", usage: "print only warnings and errors", is: usual | safe, value: toggle(&quiet)},
			skipSchemaFlag(&o.SkipSchema),
			outputFlag(e),
			{name: "kube-version", usage: "Kubernetes `RELEASE` for capabilities and deprecations", is: usual | safe, value: text(&o.Kubernetes)},
		}, request.valueFlags()...),
		action: func(ctx context.Context, paths []string) error {
			if len(paths) == 0 {
				paths = []string{"."}
			}
			if subcharts {
				for _, p := range paths {
					paths = append(paths, develop.Subcharts(p)...)
				}
			}
			values, err := chart.Values(ctx, request.sources, chart.ValuesOptions{Stdin: e.streams.In, Settings: e.files})
			if err != nil {
				return err
			}
			e.hideValues(values)
			o.Namespace, o.AsHelm, o.ValueFiles = e.offlineNamespace(), e.call.asHelm, request.valueFiles()
			return lint(ctx, e, paths, values, o, quiet)
		},
	}
}

// lint reports on each chart in Helm's words, and at the end how many failed.
func lint(ctx context.Context, e *env, paths []string, values map[string]any, o develop.LintOptions, quiet bool) error {
	text, failed, notable := "", 0, false
	document := lintDocument{Charts: []lintedChart{}}
	for _, path := range paths {
		report, err := develop.Lint(ctx, path, values, o)
		if err != nil {
			return err
		}
		e.hideValues(report.Defaults...)
		shown := slices.DeleteFunc(report.Messages, func(m develop.Message) bool { return quiet && !m.IsNotable() })
		notable = notable || slices.ContainsFunc(shown, develop.Message.IsNotable)
		if report.Failed {
			failed++
		}
		for i := range shown {
			shown[i].Text = e.hidden.Hide(shown[i].Text)
		}
		document.Charts = append(document.Charts, lintedChart{path, report.Failed, append([]develop.Message{}, shown...)})
		if quiet && len(shown) == 0 {
			continue
		}
		text += fmt.Sprintf("==> Linting %s\n", path)
		for _, m := range shown {
			severity, rest, _ := strings.Cut(m.String(), " ")
			text += e.outPalette().Status(severity) + " " + rest + "\n"
		}
		text += "\n"
	}
	document.Failed = failed
	summary := fmt.Sprintf("%d chart(s) linted, %d chart(s) failed", len(paths), failed)
	if failed == 0 && (!quiet || notable) {
		text += summary + "\n"
	}
	if e.format != output.FormatTable {
		if err := output.Encode(e.streams.Out, e.format, document); err != nil || failed == 0 {
			return err
		}
		return alreadyShown{errors.New(summary)}
	}
	if err := printTo(e.streams.Out, text); err != nil || failed == 0 {
		return err
	}
	return errors.New(summary)
}

// lintDocument is what lint -o json says. (docs/json.md)
type lintDocument struct {
	Charts []lintedChart `json:"charts"`
	Failed int           `json:"failed"`
}

type lintedChart struct {
	Path     string            `json:"path"`
	Failed   bool              `json:"failed"`
	Messages []develop.Message `json:"messages"`
}
