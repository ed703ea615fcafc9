package release

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// describeSize says how large a record is, and what it consists of, the largest parts first.
func describeSize(rec *Record, enc *encoded) string {
	stored := len(enc.head)
	for _, b := range enc.bundles {
		for _, part := range b.parts {
			stored += len(part)
		}
	}
	type entry struct {
		name string
		size int // before packing
	}
	var entries []entry
	add := func(name string, v any) {
		data, err := json.Marshal(v)
		if err == nil && len(data) > 1<<10 { // encoding it has succeeded before
			entries = append(entries, entry{name, len(data)})
		}
	}
	add("manifest", rec.Manifest)
	add("hooks", rec.Hooks)
	add("values given", rec.Config)
	add("notes", rec.Info.Notes)
	add("journal", rec.Journal)
	if rec.Chart != nil {
		add("chart values", rec.Chart.Values)
		add("chart templates", rec.Chart.Templates)
		add("chart files", rec.Chart.Files)
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return b.size - a.size })
	var texts []string
	for _, e := range entries {
		texts = append(texts, e.name+" "+sizeText(e.size))
	}
	return fmt.Sprintf("%s packed, of at most %s; before packing: %s", sizeText(stored), sizeText(maxParts*partSize), strings.Join(texts, ", "))
}

func sizeText(bytes int) string {
	switch {
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	case bytes >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%d B", bytes)
}
