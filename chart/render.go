package chart

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"deployer/chart/internal/limits"
	"deployer/internal/lazyregexp"
)

// Render evaluates the templates as Helm does (helm.sh/helm/v3/pkg/action,
// renderResources). It changes nothing, not even c; with in.Lookup.Cluster set it
// reads from the cluster.
//
// Errors for callers: *SchemaError, *TemplateError, *VersionError, *LimitError. If the error
// contains *DocumentErrors, Rendered isn't nil: its Manifest is the unsorted output of the
// templates, hooks included, for debugging.
func (c *Chart) Render(ctx context.Context, in Input) (*Rendered, error) {
	if err := chartutil.ValidateReleaseName(in.Release); err != nil {
		return nil, fmt.Errorf("%q can't be the name of a release: %w", in.Release, err)
	}
	capabilities, err := capabilitiesOf(in.Server)
	if err != nil {
		return nil, err
	}
	helm := copyChart(c.Helm)
	if err := checkKubeVersion(helm, capabilities.KubeVersion.Version); err != nil {
		return nil, err
	}
	values, err := renderValues(ctx, helm, in, capabilities)
	if err != nil {
		return nil, err
	}
	warnings := lostAliases(helm, c.Helm) // templates may change values, but not the charts
	in.endless = func(limit limits.Limit) string { return c.endlessTemplate(ctx, limit, in, capabilities) }
	files, err := executeTemplatesAndMeanwhile(ctx, helm, values, in)
	if err != nil {
		return nil, templateError(helm, err)
	}
	out := &Rendered{Chart: helm, Notes: extractNotes(helm, files, in.SubchartNotes), Warnings: warnings}
	out.MayUseCluster = len(in.PostRenderer) > 0 || mayUseCluster(helm, in.Values)
	if err := out.sortIntoManifest(helm, files, in.IncludeCRDs); err != nil {
		return out, err
	}
	return out, out.postRender(ctx, in.PostRenderer)
}

// minMemoryForBoth is how much memory the program must be allowed to use for WhileRendering to be called while
// templates are evaluated: its memory counts as theirs, and with less they have little.
const minMemoryForBoth = 1 << 30

// executeTemplatesAndMeanwhile executes the templates, and calls WhileRendering at the same time, or afterwards
// where memory is short.
func executeTemplatesAndMeanwhile(ctx context.Context, helm *helmchart.Chart, values chartutil.Values, in Input) (map[string]string, error) {
	if in.WhileRendering == nil {
		return executeTemplates(ctx, helm, values, in)
	}
	if limits.ProcessMemory() < minMemoryForBoth {
		files, err := executeTemplates(ctx, helm, values, in)
		if err == nil {
			in.WhileRendering(ctx, &Chart{Helm: helm})
		}
		return files, err
	}
	meanwhile, stop := context.WithCancel(ctx)
	defer stop()
	var work sync.WaitGroup
	work.Go(func() { in.WhileRendering(meanwhile, &Chart{Helm: helm}) })
	files, err := executeTemplates(ctx, helm, values, in)
	if err != nil {
		stop() // an endless template is abandoned and takes more and more memory until the program ends
	}
	work.Wait()
	return files, err
}

// renderValues prepares dependencies and returns what templates see. It changes helm.
func renderValues(ctx context.Context, helm *helmchart.Chart, in Input, capabilities *chartutil.Capabilities) (chartutil.Values, error) {
	user := copyMap(in.Values)
	if err := chartutil.ProcessDependenciesWithMerge(helm, user); err != nil {
		return nil, fmt.Errorf("processing the dependencies of chart %s: %w", helm.Name(), typeMismatchError(err))
	}
	options := chartutil.ReleaseOptions{
		Name:      in.Release,
		Namespace: in.Namespace,
		Revision:  max(in.Revision, 1),
		IsInstall: !in.Upgrade,
		IsUpgrade: in.Upgrade,
	}
	const later = true // the schema is checked below, for an error of our own
	values, err := chartutil.ToRenderValuesWithSchemaValidation(helm, user, options, capabilities, later)
	if err != nil {
		return nil, fmt.Errorf("computing the values of chart %s: %w", helm.Name(), typeMismatchError(err))
	}
	if in.SkipSchema {
		return values, nil
	}
	merged, _ := values["Values"].(chartutil.Values)
	// References in schemas can refer to each other in exponentially many ways.
	err = limits.Run(ctx, helm.Name(), func(limits.Limit) string { return limits.SchemaFile }, func() error {
		return ValidateValues(helm, merged)
	})
	if err != nil {
		if errors.As(err, new(*LimitError)) || ctx.Err() != nil {
			return nil, err
		}
		return nil, &SchemaError{Problems: strings.TrimSpace(err.Error())}
	}
	return values, nil
}

// typeMismatch matches Helm's error for a subchart's values that aren't a map. The rest of it
// is the value, dumped unreadably.
var typeMismatch = lazyregexp.New(`^(type mismatch on \S+): `)

func typeMismatchError(err error) error {
	if m := typeMismatch().FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("%s: the values of a subchart must be a map", m[1])
	}
	return err
}

func executeTemplates(ctx context.Context, helm *helmchart.Chart, values chartutil.Values, in Input) (map[string]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if in.DNS { // Helm's engine takes a client provider or allows DNS, not both
		e := engine.Engine{}
		if in.Lookup.Cluster != nil {
			e = engine.New(in.Lookup.contextConfig(ctx))
		}
		e.EnableDNS = true
		return renderWithinLimits(ctx, helm, in, func() (map[string]string, error) { return e.Render(helm, values) })
	}
	clients := &lookupProvider{Lookup: in.Lookup, ctx: ctx}
	return renderWithinLimits(ctx, helm, in, func() (map[string]string, error) {
		return engine.RenderWithClientProvider(helm, values, clients)
	})
}

// extractNotes removes every NOTES.txt from files and returns the chart's own, or
// all of them in order of their paths.
func extractNotes(helm *helmchart.Chart, files map[string]string, subcharts bool) string {
	const suffix = "NOTES.txt"
	own := path.Join(helm.Name(), "templates", suffix)
	notes := ""
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(name, suffix) {
			continue
		}
		if name == own || subcharts {
			if notes != "" {
				notes += "\n"
			}
			notes += files[name]
		}
		delete(files, name)
	}
	return notes
}

// VersionError says that a chart doesn't support the cluster's Kubernetes version.
type VersionError struct{ Chart, Wants, Have string }

func (e *VersionError) Error() string {
	return fmt.Sprintf("rendering chart %s: chart requires kubeVersion: %s which is incompatible with Kubernetes %s", e.Chart, e.Wants, e.Have) // Helm's words
}

// Hint says what to do about it.
func (e *VersionError) Hint() string {
	return "use a version of the chart for this Kubernetes version; without a cluster, name it with --kube-version"
}

func checkKubeVersion(helm *helmchart.Chart, have string) error {
	wants := helm.Metadata.KubeVersion
	if wants == "" || chartutil.IsCompatibleRange(wants, have) {
		return nil
	}
	return &VersionError{Chart: helm.Name(), Wants: wants, Have: have}
}
