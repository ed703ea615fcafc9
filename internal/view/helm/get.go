package helm

import (
	"fmt"
	"io"
	"sort"
	"strings"
	"time"

	helmchart "helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/internal/view/output"
	"deployer/release"
)

// HookManifests gives the manifests of hooks as `get hooks` shows them.
func HookManifests(hooks []*helmrelease.Hook) string {
	var b strings.Builder
	for _, h := range hooks {
		fmt.Fprintf(&b, "---\n# Source: %s\n%s\n", h.Path, h.Manifest)
	}
	return b.String()
}

// Values writes the values of a revision under Helm's heading.
func Values(w io.Writer, values map[string]any, all bool, f output.Format) error {
	if f != output.FormatTable {
		return output.Encode(w, f, values)
	}
	heading := "USER-SUPPLIED VALUES:"
	if all {
		heading = "COMPUTED VALUES:"
	}
	if _, err := fmt.Fprintln(w, heading); err != nil {
		return err
	}
	return output.Encode(w, output.FormatYAML, values)
}

type metadata struct {
	Name         string                  `json:"name"`
	Chart        string                  `json:"chart"`
	Version      string                  `json:"version"`
	AppVersion   string                  `json:"appVersion"`
	Annotations  map[string]string       `json:"annotations,omitempty"`
	Dependencies []*helmchart.Dependency `json:"dependencies,omitempty"`
	Namespace    string                  `json:"namespace"`
	Revision     int                     `json:"revision"`
	Status       string                  `json:"status"`
	DeployedAt   string                  `json:"deployedAt"`
	Labels       map[string]string       `json:"labels,omitempty"`
	ApplyMethod  string                  `json:"applyMethod,omitempty"`
}

// Metadata writes what `get metadata` shows.
func Metadata(w io.Writer, r *release.Record, f output.Format) error {
	m := metadata{
		Name: r.Name, Namespace: r.Namespace, Revision: r.Version, Status: r.Info.Status.String(),
		DeployedAt: r.Info.LastDeployed.Format(time.RFC3339), Labels: r.Labels, ApplyMethod: r.ApplyMethod,
	}
	if c := metadataOf(r); c != nil {
		m.Chart, m.Version, m.AppVersion = c.Name, c.Version, c.AppVersion
		m.Annotations, m.Dependencies = c.Annotations, c.Dependencies
	}
	if f != output.FormatTable {
		return output.Encode(w, f, m)
	}
	var dependencies, annotations []string
	for _, d := range m.Dependencies {
		dependencies = append(dependencies, d.Name)
	}
	sort.Strings(dependencies)
	for k, v := range m.Annotations {
		annotations = append(annotations, k+"="+v)
	}
	sort.Strings(annotations)
	_, err := fmt.Fprintf(w, "NAME: %s\nCHART: %s\nVERSION: %s\nAPP_VERSION: %s\nANNOTATIONS: %s\nDEPENDENCIES: %s\nNAMESPACE: %s\nREVISION: %d\nSTATUS: %s\nDEPLOYED_AT: %s\n",
		m.Name, m.Chart, m.Version, m.AppVersion, strings.Join(annotations, ","), strings.Join(dependencies, ","),
		m.Namespace, m.Revision, m.Status, m.DeployedAt)
	return err
}

func metadataOf(r *release.Record) *helmchart.Metadata {
	if r.Chart == nil {
		return nil
	}
	return r.Chart.Metadata
}
