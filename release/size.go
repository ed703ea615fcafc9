package release

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
)

// An Estimate is the size of a record and of its parts.
type Estimate struct {
	Stored       int           // bytes in Secrets, packed
	Limit        int           // bytes that may be stored
	Constituents []Constituent // what it consists of, largest first
}

// A Constituent is one part of a record and its size in bytes before packing.
type Constituent struct {
	Name  string
	Bytes int
}

// String writes the estimate for people, the largest shares first.
func (e Estimate) String() string {
	var shares []string
	for _, s := range e.Constituents {
		if s.Bytes > 1<<10 {
			shares = append(shares, s.Name+" "+sizeText(s.Bytes))
		}
	}
	return fmt.Sprintf("%s packed, of at most %s; before packing: %s", sizeText(e.Stored), sizeText(e.Limit), strings.Join(shares, ", "))
}

func estimate(rec *Record, enc *encoded) Estimate {
	e := Estimate{Stored: len(enc.head), Limit: maxParts * partSize}
	for _, part := range enc.parts {
		e.Stored += len(part)
	}
	share := func(what string, v any) {
		data, err := json.Marshal(v)
		if err == nil { // encoding it has succeeded before
			e.Constituents = append(e.Constituents, Constituent{what, len(data)})
		}
	}
	share("manifest", rec.Manifest)
	share("hooks", rec.Hooks)
	share("values given", rec.Config)
	share("notes", rec.Info.Notes)
	share("journal", rec.Journal)
	if rec.Chart != nil {
		share("chart values", rec.Chart.Values)
		share("chart templates", rec.Chart.Templates)
		share("chart files", rec.Chart.Files)
	}
	sort.SliceStable(e.Constituents, func(i, j int) bool { return e.Constituents[i].Bytes > e.Constituents[j].Bytes })
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
