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
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"

	"deployer/chart"
	"deployer/chart/internal/limits"
	"deployer/chart/internal/yamltext"
)

// LintOptions say how strictly charts are looked at.
type LintOptions struct {
	Strict     bool // warnings fail a chart
	SkipSchema bool
	Namespace  string // that templates see
	Kubernetes string // version for deprecations and capabilities; empty means Helm's own
}

// A Report is what the linter says of one chart.
type Report struct {
	Messages []string // as Helm writes them: [WARNING] templates/: …
	// Notable are the messages that are more than information.
	Notable []string
	Failed  bool
	// Defaults are the chart's own values, and those of the charts in it.
	Defaults []map[string]any
}

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
	if err != nil {
		line := fmt.Sprintf("Error %s", err)
		report.Messages, report.Notable, report.Failed = []string{line}, []string{line}, true
		return report, nil
	}
	limit := support.ErrorSev
	if opts.Strict {
		limit = support.WarningSev
	}
	var result support.Linter
	if err := limits.Run(ctx, path, 1, nil, func() error {
		result = lint.AllWithKubeVersionAndSchemaValidation(dir, values, opts.Namespace, version, opts.SkipSchema)
		return nil
	}); err != nil {
		return report, err
	}
	if loaded, err := loader.Load(dir); err == nil { // what is wrong with it has been said
		report.Defaults = chart.DefaultValues(loaded)
	}
	for _, m := range result.Messages {
		text := yamltext.HideQuotes(m.Error())
		report.Messages = append(report.Messages, text)
		if m.Severity > support.InfoSev {
			report.Notable = append(report.Notable, text)
		}
		report.Failed = report.Failed || m.Severity >= limit
	}
	return report, nil
}

// unpackedDirectory is the chart as a directory: itself, or an archive unpacked.
func unpackedDirectory(path string) (dir string, cleanup func(), err error) {
	cleanup = func() {}
	if !isArchive(path) {
		return path, cleanup, nil
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
