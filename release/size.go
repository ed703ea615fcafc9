package release

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// An Estimate is the size of a record and of its parts.
type Estimate struct {
	Stored  int     // bytes in Secrets, packed
	Limit   int     // bytes that may be stored
	Entries []Entry // what it consists of, largest first
}

// An Entry is one part of a record and its size in bytes before packing.
type Entry struct {
	Name  string
	Bytes int
}

// String writes the estimate for people, the largest entries first.
func (e Estimate) String() string {
	var entries []string
	for _, s := range e.Entries {
		if s.Bytes > 1<<10 {
			entries = append(entries, s.Name+" "+sizeText(s.Bytes))
		}
	}
	return fmt.Sprintf("%s packed, of at most %s; before packing: %s", sizeText(e.Stored), sizeText(e.Limit), strings.Join(entries, ", "))
}

func estimate(rec *Record, enc *encoded) Estimate {
	e := Estimate{Stored: len(enc.head), Limit: maxParts * partSize}
	for _, b := range enc.bundles {
		for _, part := range b.parts {
			e.Stored += len(part)
		}
	}
	add := func(what string, v any) {
		data, err := json.Marshal(v)
		if err == nil { // encoding it has succeeded before
			e.Entries = append(e.Entries, Entry{what, len(data)})
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
	slices.SortStableFunc(e.Entries, func(a, b Entry) int { return b.Bytes - a.Bytes })
	return e
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
