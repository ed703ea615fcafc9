package helm

import (
	"io"
	"strconv"
	"time"

	helmtime "helm.sh/helm/v3/pkg/time"

	"deployer/internal/view/output"
	"deployer/release"
)

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

func shortened(description string) string {
	if runes := []rune(description); len(runes) > maxDescription {
		return string(runes[:maxDescription-3]) + "..."
	}
	return description
}

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
		rows = append(rows, []string{strconv.Itoa(r.Revision), r.Updated.Format(time.ANSIC), status, chartWords(r), r.AppVersion, shortened(r.Description)})
	}
	if f != output.FormatTable {
		return output.Encode(w, f, elements)
	}
	return output.StatusTable(w, p, 2, []string{"REVISION", "UPDATED", "STATUS", "CHART", "APP VERSION", "DESCRIPTION"}, rows)
}
