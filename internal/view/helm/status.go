package helm

import (
	"fmt"
	"io"
	"strings"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/internal/deploy"
	"deployer/internal/view/output"
	"deployer/internal/view/run"
	"deployer/release"
)

// StatusOptions say what of a release is shown.
type StatusOptions struct {
	Format      output.Format
	Palette     output.Palette
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
func writeResources(w io.Writer, objects []deploy.LiveObject, p output.Palette) error {
	rows := make([][]string, 0, len(objects))
	for _, r := range resourcesOf(objects) {
		state, message := r.State, strings.Join(append([]string{r.Message}, r.Notes...), "; ")
		if r.Unverified && state == "ready" {
			state += " (unverified)"
		}
		rows = append(rows, []string{r.Object, state, strings.TrimPrefix(message, "; ")})
	}
	return output.StatusTable(w, p, 1, []string{"OBJECT", "STATE", "MESSAGE"}, rows)
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
	fmt.Fprintf(&b, "NAMESPACE: %s\nSTATUS: %s\nREVISION: %d\n", r.Namespace, o.Palette.Status(r.Info.Status.String()), r.Version)
	if m := metadataOf(r); o.Metadata && m != nil {
		fmt.Fprintf(&b, "CHART: %s\nVERSION: %s\nAPP_VERSION: %s\n", m.Name, m.Version, m.AppVersion)
	}
	if o.Description {
		fmt.Fprintf(&b, "DESCRIPTION: %s\n", r.Info.Description)
	}
	if len(o.Resources) > 0 {
		b.WriteString("RESOURCES:\n")
		if err := writeResources(&b, o.Resources, o.Palette); err != nil {
			return err
		}
		b.WriteString("\n")
	}
	writeTests(&b, r.Hooks, o.Palette)
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

func writeTests(b *strings.Builder, hooks []*helmrelease.Hook, p output.Palette) {
	none := true
	for _, h := range hooks {
		for _, e := range h.Events {
			if e != helmrelease.HookTest {
				continue
			}
			none = false
			if !h.LastRun.StartedAt.IsZero() {
				fmt.Fprintf(b, "TEST SUITE:     %s\nLast Started:   %s\nLast Completed: %s\nPhase:          %s\n", h.Name,
					h.LastRun.StartedAt.Format(time.ANSIC), h.LastRun.CompletedAt.Format(time.ANSIC), p.Status(h.LastRun.Phase.String()))
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
