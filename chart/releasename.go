package chart

import (
	"fmt"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
)

// GenerateReleaseName is the release name that --generate-name makes of a chart
// reference, as Helm does: "web-1763718000".
func GenerateReleaseName(ref string, now time.Time) string {
	base, _, _ := strings.Cut(filepath.Base(ref), ".")
	if base == "" {
		base = "chart"
	}
	return fmt.Sprintf("%s-%d", base, now.Unix())
}

// ReleaseNameFromTemplate is the release name that --name-template gives. The
// template has the Sprig functions and no data.
func ReleaseNameFromTemplate(text string) (string, error) {
	t, err := template.New("--name-template").Funcs(sprig.TxtFuncMap()).Parse(text)
	if err != nil {
		return "", fmt.Errorf("reading the release name's %w", err)
	}
	var out strings.Builder
	if err := t.Execute(&out, nil); err != nil {
		return "", fmt.Errorf("evaluating the release name's %w", err)
	}
	return out.String(), nil
}
