package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"deployer/chart"
	"deployer/internal/kube"
)

// A templateOptions is the command line of template.
type templateOptions struct {
	chartRequest
	options      chart.TemplateOptions
	validate     bool
	dryRun       string
	isUpgrade    bool
	kubeVersion  string
	apiVersions  []string
	skipCRDs     bool
	releaseName  bool
	generateName bool
	nameTemplate string
	timeout      time.Duration
}

func templateCommand(e *env) *cli.Command {
	o := &templateOptions{}
	flags := []cli.Flag{
		&cli.GenericFlag{Name: "show-only", Aliases: []string{"s"}, Usage: "only show the manifests of this `TEMPLATE` (may be repeated)", Value: nonEmptyList(&o.options.ShowOnly)},
		&cli.StringFlag{Name: "output-dir", Usage: "write the manifests to files in this `DIR` instead of standard output", Destination: &o.options.OutputDir},
		&cli.BoolFlag{Name: "release-name", Usage: "add the release name to the --output-dir path", Destination: &o.releaseName},
		&cli.BoolFlag{Name: "include-crds", Usage: "also show the chart's crds/ directory", Destination: &o.render.IncludeCRDs},
		&cli.BoolFlag{Name: "skip-crds", Usage: "leave out crds/, even with --include-crds", Destination: &o.skipCRDs},
		&cli.BoolFlag{Name: "skip-tests", Usage: "leave out test hooks", Destination: &o.options.SkipTests},
		&cli.BoolFlag{Name: "no-hooks", Usage: "leave out hooks", Destination: &o.options.NoHooks},
		&cli.BoolFlag{Name: "validate", Usage: "render against the cluster: use its version, its kinds and lookup", Destination: &o.validate},
		&cli.GenericFlag{Name: "dry-run", Usage: "client, or server to render against the cluster", Value: dryRunChoice(&o.dryRun)},
		&cli.DurationFlag{Name: "timeout", Usage: "time limit for rendering, including reading from the cluster; 0 leaves only the limit of a minute for templates", Value: readTimeout, Destination: &o.timeout},
		&cli.BoolFlag{Name: "is-upgrade", Usage: "set .Release.IsUpgrade instead of .Release.IsInstall", Destination: &o.isUpgrade},
		&cli.StringFlag{Name: "kube-version", Usage: "Kubernetes `VERSION` for .Capabilities.KubeVersion", Destination: &o.kubeVersion},
		&cli.GenericFlag{Name: "api-versions", Aliases: []string{"a"}, Usage: "API `VERSION` for .Capabilities.APIVersions (may be repeated)", Value: stringList(&o.apiVersions)},
		&cli.BoolFlag{Name: "generate-name", Aliases: []string{"g"}, Usage: "accepted for scripts: without NAME, the release is called release-name", Destination: &o.generateName},
		&cli.StringFlag{Name: "name-template", Usage: "Go `TEMPLATE` for the release name", Destination: &o.nameTemplate},
	}
	return &cli.Command{
		Name: "template", Usage: "render a chart and print the manifests", ArgsUsage: "[NAME] CHART",
		Description: `Prints what helm template prints. It needs no cluster unless you give --validate
or --dry-run=server.

Examples:
  deployer template web ./chart -f values.yaml
  deployer template ./chart --show-only templates/deployment.yaml`,
		Flags: slices.Concat(flags, o.valueFlags(), o.chartFlags(), o.renderFlags(), templateNoOpFlags(e)),
		Action: action(1, 2, "a chart", func(ctx context.Context, args []string) error {
			return o.run(ctx, e, args)
		}),
	}
}

func (o *templateOptions) run(ctx context.Context, e *env, args []string) error {
	// Helm calls a rendering without a name "release-name", also with
	// --generate-name: the same chart has the same manifests each time.
	name, ref := "release-name", args[len(args)-1]
	if len(args) == 2 || o.nameTemplate != "" {
		var err error
		if name, ref, err = nameAndChart(args, o.generateName, o.nameTemplate); err != nil {
			return &usageError{err: err, command: "template"}
		}
	}
	loaded, values, err := o.read(ctx, e, ref)
	if err != nil {
		return err
	}
	for _, w := range loaded.Warnings {
		e.warn(w)
	}
	in := o.render
	in.Release, in.Namespace, in.Values, in.Upgrade = name, e.offlineNamespace(), values, o.isUpgrade
	in.IncludeCRDs = in.IncludeCRDs && !o.skipCRDs
	in.Lookup.OnRead = e.hidden.AddObject
	rendered, err := o.renderInTime(ctx, e, loaded, in)
	if err != nil && e.debug && rendered != nil {
		// So that one sees where the YAML goes wrong, as with Helm's --debug.
		return errors.Join(printTo(e.streams.Data(), rendered.Manifest), err)
	}
	if err != nil {
		return err
	}
	if o.releaseName {
		o.options.Release = name
	}
	out, err := chart.FormatTemplateOutput(rendered, o.options)
	if err != nil {
		return err
	}
	for _, f := range out.Files {
		if err := writeFile(f.Path, f.Text); err != nil {
			return err
		}
	}
	return printTo(e.streams.Data(), out.Stdout)
}

// renderInTime renders the chart within --timeout.
func (o *templateOptions) renderInTime(ctx context.Context, e *env, loaded *chart.Chart, in chart.Input) (rendered *chart.Rendered, err error) {
	ctx, done := limitTime(ctx, o.timeout, "rendering", "the API server answers slowly, or a template comes to no end")
	defer func() { err = done(err) }()
	if in.Server, in.Lookup.Cluster, err = o.server(ctx, e); err != nil {
		return nil, err
	}
	return loaded.Render(ctx, in)
}

// server is the cluster whose version and kinds the templates see.
func (o *templateOptions) server(ctx context.Context, e *env) (kube.ServerInfo, *kube.Cluster, error) {
	if !o.validate && o.dryRun != "server" {
		server, err := chart.OfflineServerInfo(o.kubeVersion, o.apiVersions...)
		return server, nil, err
	}
	cluster, err := e.connect()
	if err != nil {
		return kube.ServerInfo{}, nil, err
	}
	server, err := cluster.ServerInfo(ctx)
	server.APIVersions = slices.Concat(server.APIVersions, o.apiVersions)
	return server, cluster, err
}

func writeFile(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
