package release

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	helmchart "helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"
)

// decode reads data.release of a Secret.
func decode(text []byte) (*Record, error) {
	data, err := unpack(text)
	if err != nil {
		return nil, err
	}
	return decodeJSON(data)
}

func decodeJSON(data []byte) (*Record, error) {
	rec := &Record{}
	if err := json.Unmarshal(data, rec); err != nil {
		return nil, err
	}
	if rec.Info == nil {
		return nil, errors.New("it has no info")
	}
	if rec.Name == "" || rec.Version < 1 {
		return nil, errors.New("it has no name or no version")
	}
	dropNulls(rec)
	return rec, nil
}

// dropNulls removes nulls from lists, which other code doesn't expect.
func dropNulls(rec *Record) {
	rec.Hooks = slices.DeleteFunc(rec.Hooks, func(h *helmrelease.Hook) bool { return h == nil })
	if rec.Chart == nil {
		return
	}
	none := func(f *helmchart.File) bool { return f == nil }
	rec.Chart.Files = slices.DeleteFunc(rec.Chart.Files, none)
	rec.Chart.Templates = slices.DeleteFunc(rec.Chart.Templates, none)
}

// largeRecords decodes large records one at a time, and the charts that they have in common once: those
// of the revisions of a release mostly are the same. The records share them, so they must not be changed.
type largeRecords struct {
	mu   sync.Mutex
	last storedChart // of the record decoded last; none for one whose chart isn't packed by itself
}

// lastChart returns the chart of the record that was decoded last.
func (l *largeRecords) lastChart() storedChart {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// decode is the function decode for a large record.
func (l *largeRecords) decode(text []byte) (*Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	data, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		return decode(text) // and its error
	}
	packed, _, rest, err := cutPackedChart(data, nil)
	if err != nil {
		return decode(text)
	}
	if l.last.packed != nil && l.last.packed.equal(packed) {
		if rec, _, err := decodeRest(rest); err == nil {
			rec.Chart = l.last.chart
			return rec, nil
		}
	}
	rec, err := decodeApart(packed, rest)
	if err != nil {
		return decode(text)
	}
	l.last = storedChart{packed, rec.Chart}
	return rec, nil
}

// decodeApart decodes a packed chart and the rest of its record side by side.
func decodeApart(packed *packedChart, rest []byte) (*Record, error) {
	var chart *helmchart.Chart
	var ofChart error
	var decoding sync.WaitGroup
	decoding.Go(func() { chart, ofChart = packed.decode() })
	rec, elements, err := decodeRest(rest)
	decoding.Wait()
	if err := cmp.Or(err, ofChart); err != nil {
		return nil, err
	}
	if elements+packed.size.elements > maxElements {
		return nil, errNoPackedChart // decode has the error
	}
	rec.Chart = chart
	dropNulls(rec)
	return rec, nil
}

// decodeRest decodes what a record has beside its packed chart, and counts the elements.
func decodeRest(rest []byte) (*Record, int, error) {
	m := measure(rest)
	if over := m.tooLarge(maxSingleSecretJSON); over != "" {
		return nil, 0, fmt.Errorf("it unpacks to %s", over)
	}
	rec, err := decodeJSON(append([]byte("{"), rest...))
	if err == nil && rec.Chart != nil {
		return nil, 0, errNoPackedChart // a chart that isn't packed by itself counts
	}
	return rec, m.elements, err
}
