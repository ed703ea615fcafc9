// Package develop makes charts: creates, checks and packages them, and fills
// their charts/ directories.
package develop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/deprecation"
	"k8s.io/client-go/kubernetes/scheme"

	"deployer/chart"
	"deployer/chart/internal/limits"
	"deployer/chart/internal/yamltext"
	"deployer/internal/lazyregexp"
)

// LintOptions say how strictly charts are looked at.
type LintOptions struct {
	Strict     bool // warnings fail a chart
	SkipSchema bool
	Namespace  string   // that templates see
	Kubernetes string   // version for deprecations and capabilities; empty means Helm's own
	AsHelm     bool     // only what Helm looks for, as severe as there
	ValueFiles []string // the files that values come from, to be checked, too
}

// A Report is what the linter says of one chart.
type Report struct {
	Messages []Message
	Failed   bool
	// Defaults are the chart's own values, and those of the charts in it.
	Defaults []map[string]any
}

// A Message is one problem of a chart.
type Message struct {
	Severity string `json:"severity"` // INFO, WARNING or ERROR; empty if the path isn't a chart
	Path     string `json:"path"`     // of a file in the chart
	Text     string `json:"message"`
}

// String is the message as Helm writes it: [WARNING] templates/: …
func (m Message) String() string {
	if m.Severity == "" {
		return m.Text
	}
	return fmt.Sprintf("[%s] %s: %s", m.Severity, m.Path, m.Text)
}

// IsNotable reports whether a message is more than information.
func (m Message) IsNotable() bool { return m.Severity != severities[support.InfoSev] }

var severities = map[int]string{support.UnknownSev: "UNKNOWN", support.InfoSev: "INFO", support.WarningSev: "WARNING", support.ErrorSev: "ERROR"}

// Lint checks the chart in a directory or archive as helm lint does. The report lists the
// problems of the chart, also that the path isn't a chart.
//
// The error is a *chart.LimitError when a template or a schema of it takes too much.
func Lint(ctx context.Context, path string, values map[string]any, opts LintOptions) (Report, error) {
	report := Report{}
	// By default the library assumes the Kubernetes version that it was written for.
	server, err := chart.OfflineServerInfo(opts.Kubernetes)
	if err != nil {
		return report, err
	}
	version, err := chartutil.ParseKubeVersion(server.Version)
	if err != nil {
		return report, err
	}
	dir, cleanup, err := unpackedDirectory(path)
	defer cleanup()
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, "Chart.yaml"))
		if err != nil {
			err = fmt.Errorf("unable to check Chart.yaml file in chart: %w", err)
		}
	}
	if errors.Is(err, fs.ErrNotExist) && !opts.AsHelm {
		_, absent := os.Stat(path)
		err = &chart.NotFoundError{Ref: path, Directory: absent == nil}
	}
	if err != nil {
		report.Messages, report.Failed = []Message{{Text: fmt.Sprintf("Error %s", err)}}, true
		return report, nil
	}
	limit := support.ErrorSev
	if opts.Strict {
		limit = support.WarningSev
	}
	loaded, loadErr := limits.Load(dir) // what is wrong with it Helm's linter says
	skipSchema := opts.SkipSchema || loadErr == nil && chart.SchemaRefersToFiles(loaded)
	var result support.Linter
	if err := limits.Run(ctx, path, nil, func() error {
		result = lint.AllWithKubeVersionAndSchemaValidation(dir, values, opts.Namespace, version, skipSchema)
		if skipSchema != opts.SkipSchema {
			isMissing := func(m support.Message) bool { return strings.HasPrefix(m.Err.Error(), `failing loading "file:///`) }
			result.Messages = append(slices.DeleteFunc(result.Messages, isMissing), schemaProblems(loaded, values)...)
		}
		if !opts.AsHelm {
			result.Messages = append(result.Messages, ownChecks(dir, values, version, opts)...)
			result.Messages = markRemoved(withoutRepetitions(withoutListNames(result.Messages)), version)
		}
		return nil
	}); err != nil {
		return report, err
	}
	if loadErr == nil {
		report.Defaults = chart.DefaultValues(loaded)
	}
	for _, m := range result.Messages {
		report.Messages = append(report.Messages, Message{Severity: severities[m.Severity], Path: m.Path, Text: yamltext.HideQuotes(m.Err.Error())})
		report.Failed = report.Failed || m.Severity >= limit
	}
	return report, nil
}

// schemaProblems checks values by schemas that refer to files of the chart, which Helm's linter looks for in the root directory.
func schemaProblems(c *helmchart.Chart, values map[string]any) []support.Message {
	all, err := chartutil.CoalesceValues(c, values)
	if err == nil {
		err = chart.ValidateValues(c, all)
	}
	if err != nil {
		return []support.Message{support.NewMessage(support.ErrorSev, chartutil.ValuesfileName, errors.New(strings.TrimSpace(err.Error())))}
	}
	return nil
}

// ownChecks warn of what is silently ignored: keys that are there twice, and given values that nothing reads.
func ownChecks(dir string, values map[string]any, version *chartutil.KubeVersion, opts LintOptions) []support.Message {
	var out []support.Message
	warn := func(path, text string) {
		out = append(out, support.NewMessage(support.WarningSev, path, errors.New(text)))
	}
	for _, path := range append([]string{filepath.Join(dir, chartutil.ValuesfileName)}, opts.ValueFiles...) {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // values come from URLs and standard input, too
		}
		shown := path
		if inside, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(inside) {
			shown = inside
		}
		for _, problem := range duplicateKeys(text) {
			warn(shown, problem)
		}
		if ignored := yamltext.IgnoredDocuments(string(text)); ignored != "" {
			warn(shown, ignored+" is ignored: only the first YAML document of a values file counts")
		}
	}
	loaded, err := loader.Load(dir)
	if err != nil {
		return out // which is among the messages already
	}
	for _, name := range chart.UnknownValues(loaded, values, values) {
		warn("values", name+" has no effect: no template reads it, and "+chartutil.ValuesfileName+" doesn't have it")
	}
	rendered := renderForLint(loaded, values, version, opts)
	for _, t := range loaded.Templates {
		text := rendered[loaded.Name()+"/"+t.Name]
		for _, problem := range duplicateKeys([]byte(text)) {
			warn(t.Name, problem+" (in what it renders)")
		}
		if filepath.Ext(t.Name) != ".yaml" { // as in Helm
			continue
		}
		for _, problem := range listProblems(text, version) {
			warn(t.Name, problem)
		}
	}
	return out
}

// renderForLint renders a chart as Helm's linter has done, which keeps what it got; empty if that failed.
func renderForLint(c *helmchart.Chart, values map[string]any, version *chartutil.KubeVersion, opts LintOptions) map[string]string {
	if chartutil.ProcessDependenciesWithMerge(c, values) != nil {
		return nil
	}
	all, err := chartutil.CoalesceValues(c, values)
	if err != nil {
		return nil
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *version
	release := chartutil.ReleaseOptions{Name: "test-release", Namespace: opts.Namespace}
	input, err := chartutil.ToRenderValuesWithSchemaValidation(c, all, release, capabilities, true)
	if err != nil {
		return nil
	}
	out, _ := engine.Engine{LintMode: true}.Render(c, input) // Helm's linter has told the error
	return out
}

// listName matches what Helm's linter says of a list, which has no name.
var listName = lazyregexp.New(`^object name does not conform to Kubernetes naming requirements: ""`)

// withoutListNames drops what Helm's linter says of objects without a name: listProblems says it where it isn't a list.
func withoutListNames(messages []support.Message) []support.Message {
	return slices.DeleteFunc(messages, func(m support.Message) bool { return listName().MatchString(m.Err.Error()) })
}

// listProblems says which objects of a rendered template have no name or kind, and which have a deprecated API version. Helm's
// linter doesn't look at the members of lists.
func listProblems(text string, version *chartutil.KubeVersion) []string {
	objects, err := chart.Parse(text)
	if problem, ok := errors.AsType[*chart.DocumentError](err); ok {
		return []string{problem.Err.Error()}
	}
	major, errMajor := strconv.Atoi(version.Major)
	minor, errMinor := strconv.Atoi(version.Minor)
	var out []string
	for _, m := range objects {
		gvk := m.Object.GroupVersionKind()
		obj, err := scheme.Scheme.New(gvk)
		if err != nil || errMajor != nil || errMinor != nil || !deprecation.IsDeprecated(obj, major, minor) {
			continue
		}
		obj.GetObjectKind().SetGroupVersionKind(gvk)
		out = append(out, deprecation.WarningMessage(obj))
	}
	return out
}

// withoutRepetitions drops messages that are there already.
func withoutRepetitions(messages []support.Message) []support.Message {
	seen := map[[2]string]bool{}
	return slices.DeleteFunc(messages, func(m support.Message) bool {
		key := [2]string{m.Path, m.Err.Error()}
		defer func() { seen[key] = true }()
		return seen[key]
	})
}

// markRemoved makes an error of Helm's warning about an API version that the cluster doesn't serve any more. Helm says the
// same of versions that are only deprecated.
func markRemoved(messages []support.Message, version *chartutil.KubeVersion) []support.Message {
	for i, m := range messages {
		words := strings.Fields(m.Err.Error())
		if m.Severity != support.WarningSev || len(words) < 2 {
			continue
		}
		obj, err := scheme.Scheme.New(schema.FromAPIVersionAndKind(words[0], words[1])) // "batch/v1beta1 CronJob is deprecated …"
		if err != nil {
			continue
		}
		if removed, ok := obj.(interface{ APILifecycleRemoved() (int, int) }); ok {
			major, minor := removed.APILifecycleRemoved()
			if constraint := fmt.Sprintf(">= %d.%d-0", major, minor); chartutil.IsCompatibleRange(constraint, version.Version) {
				messages[i].Severity = support.ErrorSev
			}
		}
	}
	return messages
}

// unpackedDirectory is the chart as a directory that Helm can load: itself, or an archive unpacked.
func unpackedDirectory(path string) (dir string, cleanup func(), err error) {
	cleanup = func() {}
	if !isArchive(path) {
		return limits.WithoutBrokenLinks(path)
	}
	temporary, err := os.MkdirTemp("", "deployer-lint-")
	if err != nil {
		return "", cleanup, fmt.Errorf("unable to create temp dir to extract tarball: %w", err)
	}
	cleanup = func() { os.RemoveAll(temporary) } // leftovers in the temporary directory harm nobody
	if err := chartutil.ExpandFile(temporary, path); err != nil {
		return "", cleanup, fmt.Errorf("unable to extract tarball: %w", err)
	}
	entries, err := os.ReadDir(temporary)
	if err != nil || len(entries) == 0 {
		return "", cleanup, errors.Join(errors.New("unable to read the extracted tarball"), err)
	}
	return filepath.Join(temporary, entries[0].Name()), cleanup, nil
}

// Subcharts lists the charts in charts/ of a chart directory, at any depth.
func Subcharts(path string) []string {
	var out []string
	// A directory that can't be read has no subcharts to lint, as in Helm.
	_ = filepath.WalkDir(filepath.Join(path, "charts"), func(p string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
		case entry.Name() == "Chart.yaml":
			out = append(out, filepath.Dir(p))
		case isArchive(p):
			out = append(out, p)
		}
		return nil
	})
	return out
}

func isArchive(path string) bool {
	return strings.HasSuffix(path, ".tgz") || strings.HasSuffix(path, ".tar.gz")
}
