// Package helm shows releases as Helm does: list, history, status and what get shows.
// Programs parse these shapes and words.
package helm

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"time"

	helmtime "helm.sh/helm/v3/pkg/time"

	"deployer/internal/view/output"
	"deployer/release"
)

// Where the shapes and words are: helm.sh/helm/v3/cmd/helm: list.go, history.go, status.go, get_*.go

// ListOptions say how a list of releases is shown.
type ListOptions struct {
	Format     output.Format
	TimeFormat string // Go's layout; empty for Helm's
	NoHeaders  bool
	Short      bool // names alone
	Palette    output.Palette
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
			Name: r.Name, Namespace: cmp.Or(r.ReleaseNamespace, r.Namespace), Revision: strconv.Itoa(r.Revision), Updated: timestamp(r.Updated, o.TimeFormat),
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
	return output.StatusTable(w, o.Palette, 4, headings, rows)
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

// maxDescription is how many characters of a description a table shows; JSON and status --show-desc have all of it.
const maxDescription = 110

// History writes the revisions of a release, oldest first.
func History(w io.Writer, revisions []release.Summary, f output.Format, p output.Palette) error {
	elements := make([]historyEntry, 0, len(revisions))
	rows := make([][]string, 0, len(revisions))
	for _, r := range revisions {
		status, why := statusWord(r)
		elements = append(elements, historyEntry{
			Revision: r.Revision, Updated: helmtime.Time{Time: r.Updated}, Status: status,
			Chart: chartWords(r), AppVersion: r.AppVersion, Description: r.Description, Error: why,
		})
		rows = append(rows, []string{strconv.Itoa(r.Revision), r.Updated.Format(time.ANSIC), status, chartWords(r), r.AppVersion, output.Clip(r.Description, maxDescription)})
	}
	if f != output.FormatTable {
		return output.Encode(w, f, elements)
	}
	return output.StatusTable(w, p, 2, []string{"REVISION", "UPDATED", "STATUS", "CHART", "APP VERSION", "DESCRIPTION"}, rows)
}
