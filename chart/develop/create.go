package develop

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/helmpath"
)

// Create makes a chart directory as helm create does: from Helm's own
// scaffold, or a starter, which is an absolute path or a name below Helm's
// starters directory. It overwrites files that are in the way and returns a
// warning for each.
func Create(path, starter string) (warnings []string, err error) {
	name, parent := filepath.Base(path), filepath.Dir(path)
	if starter != "" {
		if !filepath.IsAbs(starter) {
			starter = filepath.Join(helmpath.DataPath("starters"), starter)
		}
		metadata := &helmchart.Metadata{
			Name:        name,
			Description: "A Helm chart for Kubernetes",
			Type:        "application",
			Version:     "0.1.0",
			AppVersion:  "0.1.0",
			APIVersion:  helmchart.APIVersionV2,
		}
		if err := chartutil.CreateFrom(metadata, parent, starter); err != nil {
			return nil, fmt.Errorf("creating chart %s from starter %s: %w", path, starter, err)
		}
		return nil, nil
	}
	// The library reports files that it overwrites through this variable only.
	var output bytes.Buffer
	previous := chartutil.Stderr
	chartutil.Stderr = &output
	defer func() { chartutil.Stderr = previous }()
	if _, err := chartutil.Create(name, parent); err != nil {
		return nil, fmt.Errorf("creating chart %s: %w", path, err)
	}
	for line := range strings.Lines(output.String()) {
		warnings = append(warnings, strings.TrimSpace(line))
	}
	return warnings, nil
}
