package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"deployer/chart"
	"deployer/internal/deploy"
)

// A chartRequest is where a chart and its values come from.
type chartRequest struct {
	load     chart.LoadOptions
	sources  []chart.ValuesSource
	render   chart.Input
	renderer string
	args     []string
}

// valueFlags are the flags that give values.
func (r *chartRequest) valueFlags() []cli.Flag {
	const group = "Values"
	value := func(kind chart.ValuesSourceKind, usage string, aliases ...string) cli.Flag {
		return &cli.GenericFlag{Name: string(kind)[2:], Aliases: aliases, Category: group, Usage: usage, Value: &valueSource{kind: kind, into: &r.sources}}
	}
	return []cli.Flag{
		value(chart.ValuesFile, "`FILE`, URL or - (standard input) with values (may be repeated or separated by commas)", "f"),
		value(chart.Set, "set values, `KEY=VALUE`,... (may be repeated)"),
		value(chart.SetString, "set values as strings, `KEY=VALUE`,... (may be repeated)"),
		value(chart.SetFile, "set values to the contents of files, `KEY=PATH`,... (may be repeated)"),
		value(chart.SetJSON, "set values as JSON, `KEY=JSON`,... or one JSON object (may be repeated)"),
		value(chart.SetLiteral, "set one value literally, `KEY=VALUE`: commas and backslashes have no meaning (may be repeated)"),
	}
}

// valueFiles are the local files among the sources of values, and URLs, which nobody finds there.
func (r *chartRequest) valueFiles() []string {
	var out []string
	for _, s := range r.sources {
		if s.Kind == chart.ValuesFile {
			out = append(out, splitList(s.Value)...)
		}
	}
	return out
}

// chartFlags say where a chart to deploy comes from.
func (r *chartRequest) chartFlags() []cli.Flag {
	return append(locateFlags(&r.load),
		&cli.BoolFlag{Name: "dependency-update", Category: chartCategory, Usage: "download missing dependencies first", Destination: &r.load.UpdateDependencies})
}

// chartCategory is the group of the flags that say where a chart comes from.
const chartCategory = "Chart"

// locateFlags say where a chart comes from.
func locateFlags(o *chart.LoadOptions) []cli.Flag {
	const group = chartCategory
	flags := []cli.Flag{
		&cli.StringFlag{Name: "version", Category: group, Usage: "`VERSION` of the chart, or a constraint such as ^2.0.0 (default: the newest)", Destination: &o.Version},
		&cli.BoolFlag{Name: "devel", Category: group, Usage: "also consider development versions, same as --version '>0.0.0-0'", Destination: &o.Devel},
		&cli.StringFlag{Name: "repo", Category: group, Usage: "`URL` of the chart repository", Destination: &o.Repo},
		&cli.BoolFlag{Name: "verify", Category: group, Usage: "verify the chart's signature first", Destination: &o.Verify},
		keyringFlag(&o.Keyring),
		allowMismatchFlag(&o.AllowMismatch),
		passCredentialsFlag(group, &o.Access),
	}
	return append(flags, accessFlags(&o.Access)...)
}

func keyringFlag(path *string) cli.Flag {
	return &cli.StringFlag{Name: "keyring", Category: chartCategory, Usage: "`FILE` with the public keys to verify signatures with (default: GnuPG's keyring)", Destination: path}
}

func allowMismatchFlag(allow *bool) cli.Flag {
	return &cli.BoolFlag{Name: "allow-chart-mismatch", Category: chartCategory,
		Usage: "only warn if the digest, name or version of a chart is not what its index or reference says", Destination: allow}
}

func passCredentialsFlag(group string, a *chart.Access) cli.Flag {
	return &cli.BoolFlag{Name: "pass-credentials", Category: group, Usage: "send the credentials to all hosts, not only the repository's", Destination: &a.PassCredentials}
}

// accessFlags say how to reach a repository or registry.
func accessFlags(a *chart.Access) []cli.Flag {
	const group = "Access"
	return append(tlsFlags(a),
		&cli.StringFlag{Name: "username", Category: group, Usage: "user `NAME` for the repository or registry", Destination: &a.Username},
		&cli.StringFlag{Name: "password", Category: group, Usage: "`PASSWORD` for the repository or registry", Destination: &a.Password},
		&cli.BoolFlag{Name: "plain-http", Category: group, Usage: "use HTTP instead of HTTPS for the registry", Destination: &a.PlainHTTP})
}

func tlsFlags(a *chart.Access) []cli.Flag {
	const group = "Access"
	return append(certificateFlags(group, a),
		&cli.BoolFlag{Name: "insecure-skip-tls-verify", Category: group, Usage: "don't verify the server's certificate", Destination: &a.InsecureSkipTLS})
}

func certificateFlags(group string, a *chart.Access) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "cert-file", Category: group, Usage: "`FILE` with the client certificate", Destination: &a.CertFile},
		&cli.StringFlag{Name: "key-file", Category: group, Usage: "`FILE` with the client certificate's key", Destination: &a.KeyFile},
		&cli.StringFlag{Name: "ca-file", Category: group, Usage: "`FILE` with the certificate authorities to trust", Destination: &a.CAFile},
	}
}

// renderFlags say how templates are evaluated.
func (r *chartRequest) renderFlags() []cli.Flag {
	const group = "Rendering"
	return []cli.Flag{
		skipSchemaFlag(group, &r.render.SkipSchema),
		&cli.BoolFlag{Name: "render-subchart-notes", Category: group, Usage: "also print the notes of subcharts", Destination: &r.render.SubchartNotes},
		&cli.BoolFlag{Name: "enable-dns", Category: group, Usage: "let templates look up host names", Destination: &r.render.DNS},
		&cli.StringFlag{Name: "post-renderer", Category: group, Usage: "`PROGRAM` that the rendered manifest is piped through", Destination: &r.renderer},
		&cli.GenericFlag{Name: "post-renderer-args", Category: group, Usage: "`ARG` for the post-renderer (may be repeated)", Value: verbatimList(&r.args)},
	}
}

func skipSchemaFlag(group string, skip *bool) cli.Flag {
	return &cli.BoolFlag{Name: "skip-schema-validation", Category: group, Usage: "don't check the values against the chart's values.schema.json", Destination: skip}
}

// readInTime is read within a time limit for the step.
func (r *chartRequest) readInTime(ctx context.Context, e *env, ref string, limit time.Duration) (*chart.Chart, map[string]any, error) {
	ctx, done := deploy.LimitStep(ctx, deploy.StepReadChart, limit)
	loaded, values, err := r.read(ctx, e, ref)
	return loaded, values, done(err)
}

// read loads the chart and merges the values; problems of both are reported
// together.
func (r *chartRequest) read(ctx context.Context, e *env, ref string) (*chart.Chart, map[string]any, error) {
	if r.renderer != "" {
		r.render.PostRenderer = append([]string{r.renderer}, r.args...)
		e.hideValues(map[string]any{"post-renderer": strings.Join(r.render.PostRenderer, " ")}) // it is in errors
	}
	values, verr := chart.Values(ctx, r.sources, chart.ValuesOptions{Stdin: e.streams.In, Settings: e.helmFiles()})
	loaded, lerr := e.loadChart(ctx, ref, r.load)
	e.hideValues(values)
	if err := errors.Join(lerr, verr); err != nil {
		return nil, nil, err
	}
	e.hideValues(chart.DefaultValues(loaded.Helm)...)
	return loaded, values, nil
}

// loadChart loads a chart, and shows on standard error what is downloaded, as Helm does.
func (e *env) loadChart(ctx context.Context, ref string, o chart.LoadOptions) (*chart.Chart, error) {
	waiting := e.showTransfer("fetching", ref)
	defer waiting.Stop()
	out := waiting.Through(e.streams.Err)
	o.Settings, o.Progress = e.helmFiles(), func(line string) { fmt.Fprintln(out, line) } // a failed write is no failure of the command
	return chart.Load(ctx, ref, o)
}
