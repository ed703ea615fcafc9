package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply"
	"deployer/apply/provenance"
	"deployer/chart"
	"deployer/internal/kube"
)

// A templateOptions is the command line of template.
type templateOptions struct {
	chartRequest
	options      chart.TemplateOptions
	validate     bool
	dryRun       string
	adopts       bool
	kubeVersion  string
	apiVersions  []string
	skipCRDs     bool
	releaseName  bool
	generateName bool
	nameTemplate string
	timeout      time.Duration
}

func templateCommand(e *env) *command {
	o := &templateOptions{}
	const why = "template only renders"
	shared := []*flag{ // with install in Helm, where they do nothing either
		{name: "description", why: why, value: text(new(string))}, {name: "labels", also: "l", why: why, value: text(new(string))},
		noEffect("wait", why, slices.Sorted(maps.Keys(waitSynonyms))...), noEffect("wait-for-jobs", why),
		noEffect("atomic", why), noEffect("create-namespace", why), noEffect("disable-openapi-validation", why),
		noEffect("force", why), noEffect("hide-notes", why), noEffect("replace", why),
	}
	flags := []*flag{
		{name: "show-only", also: "s", usage: "only show the manifests of this `TEMPLATE` (repeatable)", is: common | safe, value: verbatimList(&o.options.ShowOnly)},
		{name: "output-dir", usage: "write the manifests to files in this `DIR` instead of standard output", is: usual | safe, value: text(&o.options.OutputDir)},
		{name: "release-name", usage: "add the release name to the --output-dir path", is: usual | safe, value: toggle(&o.releaseName)},
		{name: "include-crds", usage: "also show the chart's crds/ directory", is: usual | safe, value: toggle(&o.render.IncludeCRDs)},
		{name: "skip-crds", usage: "leave out crds/, even with --include-crds", is: rare | safe, value: toggle(&o.skipCRDs)},
		{name: "skip-tests", usage: "leave out test hooks", is: usual | safe, value: toggle(&o.options.SkipTests)},
		{name: "no-hooks", usage: "leave out hooks", is: usual | risky | fixed, value: toggle(&o.options.NoHooks)},
		{name: "validate", usage: "render against the cluster, with its version, its kinds and lookup, and check that the objects can be applied there", is: usual | safe, value: toggle(&o.validate)},
		{name: "dry-run", usage: "client, or server for the same as --validate", is: common | safe, value: dryRunChoice(&o.dryRun)},
		{name: "take-ownership", usage: "with --validate, accept objects that exist and belong to no release", is: rare | risky | fixed, value: toggle(&o.adopts)},
		{name: "timeout", usage: "time limit for rendering, including reading from the cluster; 0 leaves only the limit of a minute for templates", is: common | safe, value: duration(&o.timeout, readTimeout)},
		{name: "is-upgrade", usage: "set .Release.IsUpgrade instead of .Release.IsInstall", is: usual | safe, value: toggle(&o.render.Upgrade)},
		{name: "kube-version", usage: "Kubernetes `RELEASE` for .Capabilities.KubeVersion", is: usual | safe, value: text(&o.kubeVersion)},
		{name: "api-versions", also: "a", usage: "`API` version for .Capabilities.APIVersions (repeatable)", is: usual | safe, value: list(&o.apiVersions)},
		{name: "generate-name", also: "g", usage: "accepted for scripts: without NAME, the release is called release-name", is: usual | safe, value: toggle(&o.generateName)},
		{name: "name-template", usage: "Go `TEMPLATE` for the release name", is: rare | safe, value: text(&o.nameTemplate)},
	}
	return &command{
		name: "template", usage: "render a chart and print the manifests", args: "[NAME] CHART", takes: "a chart", complete: "CHART CHART",
		steps: `Prints what helm template prints. It needs no cluster unless you give --validate
or --dry-run=server.`,
		examples: `deployer template web ./chart -f values.yaml
deployer template ./chart --show-only templates/deployment.yaml`,
		flags: slices.Concat(flags, o.valueFlags(), o.chartFlags(), o.renderFlags(), shared),
		action: func(ctx context.Context, args []string) error {
			return o.run(ctx, e, args)
		},
	}
}

func (o *templateOptions) run(ctx context.Context, e *env, args []string) error {
	// Helm calls a rendering without a name "release-name", also with
	// --generate-name: the same chart has the same manifests each time.
	name, ref := "release-name", args[len(args)-1]
	if len(args) == 2 || o.nameTemplate != "" {
		var err error
		if name, ref, err = nameAndChart(args, o.generateName, o.nameTemplate); err != nil {
			return &usageError{err}
		}
	}
	loaded, values, err := o.read(ctx, e, ref)
	if err != nil {
		return err
	}
	for _, w := range loaded.Warnings {
		e.warn(w)
	}
	if o.adopts && !o.usesCluster() {
		e.warn("--take-ownership has no effect without --validate or --dry-run=server")
	}
	in := o.render
	in.Release, in.Namespace, in.Values = name, e.offlineNamespace(), values
	in.IncludeCRDs = in.IncludeCRDs && !o.skipCRDs
	in.Lookup.OnRead = func(obj *unstructured.Unstructured) { e.hidden.AddObject(obj) }
	rendered, err := o.renderInTime(ctx, e, loaded, in)
	if err != nil && e.files.Debug && rendered != nil {
		// So that one sees where the YAML goes wrong, as with Helm's --debug.
		return errors.Join(printTo(e.streams.Data(), rendered.Manifest), err)
	}
	if err != nil {
		return err
	}
	for _, w := range rendered.Warnings {
		e.warn(w)
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
	if rendered, err = loaded.Render(ctx, in); err != nil || !o.usesCluster() {
		return rendered, err
	}
	return rendered, o.check(ctx, e, rendered, in)
}

func (o *templateOptions) usesCluster() bool { return o.validate || o.dryRun == "server" }

// check checks that the objects, but not hooks, can be applied, as Helm does.
func (o *templateOptions) check(ctx context.Context, e *env, rendered *chart.Rendered, in chart.Input) error {
	objects, err := chart.Parse(rendered.Manifest)
	if err != nil {
		return err
	}
	var crds []kube.Manifest
	if !in.IncludeCRDs && !o.skipCRDs { // otherwise they are among the objects
		if crds, _, err = chart.CRDs(rendered.Chart); err != nil {
			return err
		}
	}
	owner := provenance.Owner{Release: in.Release, Namespace: in.Namespace}
	options := apply.Options{Policies: apply.Policies{TakeOwnership: o.adopts}, Hidden: e.hidden, Warn: e.warn}
	warnings, err := apply.New(in.Lookup.Cluster, owner, options).Check(ctx, crds, objects, !in.Upgrade)
	for _, w := range warnings {
		e.warn(w.String())
	}
	return err
}

// server is the cluster whose version and kinds the templates see.
func (o *templateOptions) server(ctx context.Context, e *env) (kube.ServerInfo, *kube.Cluster, error) {
	if !o.usesCluster() {
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
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o644)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
