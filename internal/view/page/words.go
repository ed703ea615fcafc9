package page

import (
	"time"

	"deployer/chart"
	"deployer/release"
)

// ChartName names the chart of a revision; empty when that isn't known.
func ChartName(record *release.Record) string {
	if record == nil {
		return ""
	}
	return (&chart.Chart{Helm: record.Chart}).Name()
}

// Timestamp is a time in RFC 3339; empty when it isn't known.
func Timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
