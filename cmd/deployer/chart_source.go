package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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
func (r *chartRequest) valueFlags() []*flag {
	from := func(kind chart.ValuesSourceKind, usage string, level attribute) *flag {
		return &flag{name: string(kind)[2:], usage: usage, is: level | safe | rendering, value: valueSource(kind, &r.sources)}
	}
	file := from(chart.ValuesFile, "`FILE`, URL or - (standard input) with values (repeatable, or separated by commas)", common)
	file.also = "f"
	return inGroup("Values", []*flag{
		file,
		from(chart.Set, "set values, `KEY=VALUE`,... (repeatable)", common),
		from(chart.SetString, "set values as strings, `KEY=VALUE`,... (repeatable)", usual),
		from(chart.SetFile, "set values to the contents of files, `KEY=PATH`,... (repeatable)", rare),
		from(chart.SetJSON, "set values as JSON, `KEY=JSON`,... or one JSON object (repeatable)", rare),
		from(chart.SetLiteral, "set one value literally, `KEY=VALUE`: commas and backslashes have no meaning (repeatable)", rare),
	})
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
func (r *chartRequest) chartFlags() []*flag {
	return append(locateFlags(&r.load),
		&flag{name: "dependency-update", group: chartGroup, usage: "download missing dependencies first", is: rare | safe | rendering, value: toggle(&r.load.UpdateDependencies)})
}

// chartGroup is the group of the flags that say where a chart comes from.
const chartGroup = "Chart"

// locateFlags say where a chart comes from.
func locateFlags(o *chart.LoadOptions) []*flag {
	flags := inGroup(chartGroup, []*flag{
		{name: "version", usage: "`VERSION` or constraint such as ^2.0.0 (default: newest)", is: common | safe | noVariable | rendering, value: text(&o.Version)},
		{name: "devel", usage: "also consider development versions, same as --version '>0.0.0-0'", is: rare | safe | rendering, value: toggle(&o.Devel)},
		{name: "repo", usage: "`URL` of the chart repository", is: usual | safe | rendering, value: text(&o.Repo)},
		{name: "verify", usage: "verify the chart's signature first", is: rare | safe | rendering, value: toggle(&o.Verify)},
		keyringFlag(&o.Keyring),
		allowMismatchFlag(&o.AllowMismatch),
		passCredentialsFlag(&o.Access),
	})
	return append(flags, accessFlags(&o.Access)...)
}

func keyringFlag(path *string) *flag {
	return &flag{name: "keyring", group: chartGroup, usage: "`FILE` with the public keys to verify signatures with (default: GnuPG's keyring)", is: rare | safe | rendering, value: text(path)}
}

func allowMismatchFlag(allow *bool) *flag {
	return &flag{name: "allow-chart-mismatch", group: chartGroup, usage: "only warn if the digest, name or version of a chart is not what its index or reference says", is: rare | risky | rendering, value: toggle(allow)}
}

func passCredentialsFlag(a *chart.Access) *flag {
	return &flag{name: "pass-credentials", usage: "send the credentials to all hosts, not only the repository's", is: rare | risky | rendering, value: toggle(&a.PassCredentials)}
}

// accessFlags say how to reach a repository or registry.
func accessFlags(a *chart.Access) []*flag {
	return inGroup("Access", append(tlsFlags(a),
		&flag{name: "username", usage: "user `NAME` for the repository or registry", is: rare | safe | rendering, value: text(&a.Username)},
		&flag{name: "password", usage: "`PASSWORD` for the repository or registry", is: rare | safe | rendering, value: text(&a.Password)},
		&flag{name: "plain-http", usage: "use HTTP instead of HTTPS for the registry", is: rare | risky | rendering, value: toggle(&a.PlainHTTP)}))
}

func tlsFlags(a *chart.Access) []*flag {
	return inGroup("Access", append(certificateFlags(a),
		&flag{name: "insecure-skip-tls-verify", usage: "don't verify the server's certificate", is: rare | risky | rendering, value: toggle(&a.InsecureSkipTLS)}))
}

func certificateFlags(a *chart.Access) []*flag {
	return []*flag{
		{name: "cert-file", usage: "`FILE` with the client certificate", is: rare | safe | rendering, value: text(&a.CertFile)},
		{name: "key-file", usage: "`FILE` with the client certificate's key", is: rare | safe | rendering, value: text(&a.KeyFile)},
		{name: "ca-file", usage: "`FILE` with the certificate authorities to trust", is: rare | safe | rendering, value: text(&a.CAFile)},
	}
}

// renderFlags say how templates are evaluated.
func (r *chartRequest) renderFlags() []*flag {
	return inGroup("Rendering", []*flag{
		skipSchemaFlag(&r.render.SkipSchema),
		{name: "render-subchart-notes", usage: "also print the notes of subcharts", is: rare | safe | rendering, value: toggle(&r.render.SubchartNotes)},
		{name: "enable-dns", usage: "let templates look up host names", is: rare | safe | rendering, value: toggle(&r.render.DNS)},
		{name: "post-renderer", usage: "`PROGRAM` that the rendered manifest is piped through", is: rare | safe | rendering, value: text(&r.renderer)},
		{name: "post-renderer-args", usage: "`ARG` for the post-renderer (repeatable)", is: rare | safe | rendering, value: verbatimList(&r.args)},
	})
}

func skipSchemaFlag(skip *bool) *flag {
	return &flag{name: "skip-schema-validation", usage: "don't check the values against the chart's values.schema.json", is: rare | risky | rendering, value: toggle(skip)}
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
	values, verr := chart.Values(ctx, r.sources, chart.ValuesOptions{Stdin: e.streams.In, Settings: e.files, Warn: e.warn})
	loaded, lerr := e.loadChart(ctx, ref, r.load)
	e.hideValues(values)
	if err := errors.Join(lerr, verr); err != nil {
		return nil, nil, err
	}
	e.hideValues(chart.DefaultValues(loaded.Helm)...)
	unknown, err := r.unknownValues(ctx, loaded, values)
	loaded.Warnings = append(loaded.Warnings, unknown...)
	return loaded, values, err
}

// unknownValues warns of values set on the command line that nothing reads. Files may have values for several charts, and
// anchors, so these are left to lint.
func (r *chartRequest) unknownValues(ctx context.Context, c *chart.Chart, all map[string]any) (warnings []string, err error) {
	set := slices.DeleteFunc(slices.Clone(r.sources), func(s chart.ValuesSource) bool {
		return s.Kind == chart.ValuesFile || s.Kind == chart.SetFile
	})
	given, err := chart.Values(ctx, set, chart.ValuesOptions{})
	for _, name := range chart.UnknownValues(c.Helm, given, all) {
		warnings = append(warnings, name+" has no effect: no template of the chart reads it, and its values.yaml doesn't have it")
	}
	return warnings, err
}

// loadChart loads a chart, and shows on standard error what is downloaded, as Helm does.
func (e *env) loadChart(ctx context.Context, ref string, o chart.LoadOptions) (*chart.Chart, error) {
	waiting := e.showTransfer("fetching", ref)
	defer waiting.Stop()
	out := waiting.Through(e.streams.Err)
	o.Settings, o.Progress = e.files, func(line string) { fmt.Fprintln(out, line) } // a failed write is no failure of the command
	return chart.Load(ctx, ref, o)
}
