// Package helm shows releases as Helm does: list, history, status and what get shows.
// Programs parse these shapes and words.
package helm

import (
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
	"time"

	helmchart "helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"
	helmtime "helm.sh/helm/v3/pkg/time"

	"deployer/internal/deploy"
	"deployer/internal/view/output"
	"deployer/internal/view/run"
	"deployer/release"
)

// Where the shapes and words are: helm.sh/helm/v3/cmd/helm: list.go, history.go, status.go, get_*.go

// ListOptions say how a list of releases is shown.
type ListOptions struct {
	Format     output.Format
	TimeFormat string // Go's layout; empty for Helm's
	NoHeaders  bool
	Short      bool // names alone
}

type listEntry struct {
	Name       string `json:"name"`
	Namespace  string `json:"namespace"`
	Revision   string `json:"revision"`
	Updated    string `json:"updated"`
	Status     string `json:"status"`
	Chart      string `json:"chart"`
	AppVersion string `json:"app_version"`
	Error      string `json:"error,omitempty"` // of status unreadable: why
}

// unreadable is the status of what can't be read.
const unreadable = "unreadable"

// statusWord returns the status of a revision, and why it can't be read, if so.
func statusWord(s release.Summary) (status, why string) {
	if s.Unreadable != nil {
		return unreadable, s.Unreadable.Error()
	}
	return s.Status.String(), ""
}

// Releases writes a list of releases, one line each.
func Releases(w io.Writer, releases []release.Summary, o ListOptions) error {
	names, elements := make([]string, 0, len(releases)), make([]listEntry, 0, len(releases))
	for _, r := range releases {
		if r.Revision > 0 { // otherwise it is the name of an unreadable Secret
			names = append(names, r.Name)
		}
		status, why := statusWord(r)
		elements = append(elements, listEntry{
			Name: r.Name, Namespace: r.Namespace, Revision: strconv.Itoa(r.Revision), Updated: timestamp(r.Updated, o.TimeFormat),
			Status: status, Chart: chartWords(r), AppVersion: r.AppVersion, Error: why,
		})
	}
	switch {
	case o.Short && o.Format != output.FormatTable:
		return output.Encode(w, o.Format, names)
	case o.Short:
		for _, n := range names {
			if _, err := fmt.Fprintln(w, n); err != nil {
				return err
			}
		}
		return nil
	case o.Format != output.FormatTable:
		return output.Encode(w, o.Format, elements)
	}
	headings := []string{"NAME", "NAMESPACE", "REVISION", "UPDATED", "STATUS", "CHART", "APP VERSION"}
	if o.NoHeaders {
		headings = nil
	}
	rows := make([][]string, 0, len(elements))
	for _, e := range elements {
		rows = append(rows, []string{e.Name, e.Namespace, e.Revision, e.Updated, e.Status, e.Chart, e.AppVersion})
	}
	return output.Table(w, headings, rows)
}

// chartWords names a chart with its version. Some records have none.
// (helm.sh/helm issue 1347)
func chartWords(r release.Summary) string {
	if r.Chart == "" {
		return "MISSING"
	}
	return r.Chart + "-" + r.ChartVersion
}

func timestamp(t time.Time, layout string) string {
	switch {
	case t.IsZero():
		return "-"
	case layout != "":
		return t.Format(layout)
	}
	return t.String()
}

type historyEntry struct {
	Revision    int           `json:"revision"`
	Updated     helmtime.Time `json:"updated"`
	Status      string        `json:"status"`
	Chart       string        `json:"chart"`
	AppVersion  string        `json:"app_version"`
	Description string        `json:"description"`
	Error       string        `json:"error,omitempty"` // of status unreadable: why
}

// History writes the revisions of a release, oldest first.
func History(w io.Writer, revisions []release.Summary, f output.Format) error {
	elements := make([]historyEntry, 0, len(revisions))
	rows := make([][]string, 0, len(revisions))
	for _, r := range revisions {
		status, why := statusWord(r)
		elements = append(elements, historyEntry{
			Revision: r.Revision, Updated: helmtime.Time{Time: r.Updated}, Status: status,
			Chart: chartWords(r), AppVersion: r.AppVersion, Description: r.Description, Error: why,
		})
		rows = append(rows, []string{strconv.Itoa(r.Revision), r.Updated.Format(time.ANSIC), status, chartWords(r), r.AppVersion, r.Description})
	}
	if f != output.FormatTable {
		return output.Encode(w, f, elements)
	}
	return output.Table(w, []string{"REVISION", "UPDATED", "STATUS", "CHART", "APP VERSION", "DESCRIPTION"}, rows)
}

// StatusOptions say what of a release is shown.
type StatusOptions struct {
	Format      output.Format
	Metadata    bool // also the chart's name and versions
	Description bool
	HideNotes   bool
	// Manifest adds hooks and the manifest, Everything the values besides: what
	// `get all` shows.
	Manifest, Everything bool
	Computed             map[string]any // with Everything: the values with the chart's defaults
	// Chart adds the chart where programs read: JSON and YAML.
	Chart     bool
	Resources []deploy.LiveObject // nil shows none
}

// releaseDocument is a release as programs get it, with Helm's field names.
type releaseDocument struct {
	helmrelease.Release
	ApplyMethod string     `json:"apply_method,omitempty"`
	Resources   []resource `json:"resources,omitempty"`
}

// A resource is one live object and its verdict; see docs/json.md.
type resource struct {
	Object string `json:"object"`
	Group  string `json:"group"`
	run.StatusFields
}

func resourcesOf(objects []deploy.LiveObject) []resource {
	var out []resource
	for _, o := range objects {
		out = append(out, resource{o.ID.String(), o.ID.Group, run.StatusFieldsOf(o.Status)})
	}
	return out
}

// writeResources writes a table of live objects.
func writeResources(w io.Writer, objects []deploy.LiveObject) error {
	rows := make([][]string, 0, len(objects))
	for _, r := range resourcesOf(objects) {
		state, message := r.State, strings.Join(append([]string{r.Message}, r.Notes...), "; ")
		if r.Unverified && state == "ready" {
			state += " (unverified)"
		}
		rows = append(rows, []string{r.Object, state, strings.TrimPrefix(message, "; ")})
	}
	return output.Table(w, []string{"OBJECT", "STATE", "MESSAGE"}, rows)
}

// Status writes one revision of a release.
func Status(w io.Writer, r *release.Record, o StatusOptions) error {
	if o.Format != output.FormatTable && o.Format != "" {
		p := releaseDocument{Release: r.Release, ApplyMethod: r.ApplyMethod, Resources: resourcesOf(o.Resources)}
		if !o.Chart {
			p.Chart = nil
		}
		return output.Encode(w, o.Format, p)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "NAME: %s\n", r.Name)
	if !r.Info.LastDeployed.IsZero() {
		fmt.Fprintf(&b, "LAST DEPLOYED: %s\n", r.Info.LastDeployed.Format(time.ANSIC))
	}
	fmt.Fprintf(&b, "NAMESPACE: %s\nSTATUS: %s\nREVISION: %d\n", r.Namespace, r.Info.Status, r.Version)
	if m := metadataOf(r); o.Metadata && m != nil {
		fmt.Fprintf(&b, "CHART: %s\nVERSION: %s\nAPP_VERSION: %s\n", m.Name, m.Version, m.AppVersion)
	}
	if o.Description {
		fmt.Fprintf(&b, "DESCRIPTION: %s\n", r.Info.Description)
	}
	if len(o.Resources) > 0 {
		b.WriteString("RESOURCES:\n")
		if err := writeResources(&b, o.Resources); err != nil {
			return err
		}
		b.WriteString("\n")
	}
	writeTests(&b, r.Hooks)
	if o.Everything {
		for i, values := range []map[string]any{r.Config, o.Computed} {
			if err := Values(&b, values, i == 1, output.FormatTable); err != nil {
				return err
			}
			b.WriteString("\n")
		}
	}
	if o.Everything || o.Manifest {
		fmt.Fprintf(&b, "HOOKS:\n%sMANIFEST:\n%s\n", HookManifests(r.Hooks), r.Manifest)
	}
	if !o.HideNotes && r.Info.Notes != "" {
		fmt.Fprintf(&b, "NOTES:\n%s\n", strings.TrimSpace(r.Info.Notes))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeTests(b *strings.Builder, hooks []*helmrelease.Hook) {
	none := true
	for _, h := range hooks {
		for _, e := range h.Events {
			if e != helmrelease.HookTest {
				continue
			}
			none = false
			if !h.LastRun.StartedAt.IsZero() {
				fmt.Fprintf(b, "TEST SUITE:     %s\nLast Started:   %s\nLast Completed: %s\nPhase:          %s\n", h.Name,
					h.LastRun.StartedAt.Format(time.ANSIC), h.LastRun.CompletedAt.Format(time.ANSIC), h.LastRun.Phase)
			}
		}
	}
	if none {
		b.WriteString("TEST SUITE: None\n")
	}
}

// PodLogs writes the logs of test pods as Helm does: unchanged, after a blank line, which is
// also written if there are no logs. Nil logs weren't asked for and write nothing. (helm.sh/helm/v3/pkg/action/release_testing.go)
func PodLogs(w io.Writer, logs []deploy.PodLog) error {
	if logs == nil {
		return nil
	}
	var b strings.Builder
	b.WriteString("\n")
	for _, l := range logs {
		name := l.Pod
		if l.Container != "" {
			name += " (" + l.Container + ")"
		}
		fmt.Fprintf(&b, "POD LOGS: %s\n%s\n", name, l.Text)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

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
