package release

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	helmchart "helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"
)

// largeChart is a chart that takes a while to pack.
func largeChart(content string) *helmchart.Chart {
	return &helmchart.Chart{
		Metadata: &helmchart.Metadata{Name: "c", Version: "1"}, Values: map[string]any{"a": "<b>"},
		Files: []*helmchart.File{{Name: "crds/a.yaml", Data: bytes.Repeat([]byte(content+"\n"), 5000)}},
	}
}

// The chart is packed once for all records that have the same one, and the stored records can be read by
// anybody.
func TestChartIsPackedOnce(t *testing.T) {
	first := sample("web", 1, helmrelease.StatusDeployed)
	first.Chart = largeChart("one")
	charts := &packedCharts{}
	if _, err := encode(first, charts); err != nil {
		t.Fatal(err)
	}
	packed := charts.packed
	first.Info.Description = "another"
	enc, err := encode(first, charts)
	if err != nil {
		t.Fatal(err)
	}
	if charts.packed != packed {
		t.Error("the same chart was packed again")
	}
	data, err := unpackedGzip(enc.head)
	if err != nil {
		t.Fatal(err)
	}
	stored, _, _, err := cutPackedChart(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	for content, again := range map[string]bool{"one": false, "two": true} {
		next := sample("web", 2, helmrelease.StatusDeployed)
		next.Chart = largeChart(content)
		later := &packedCharts{previous: storedChart{packed: stored}}
		enc, err := encode(next, later)
		if err != nil {
			t.Fatal(err)
		}
		if packedAgain := later.packed != stored; packedAgain != again {
			t.Errorf("a chart of %q after one of \"one\": packed again is %v, want %v", content, packedAgain, again)
		}
		got, err := decode(enc.head)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got.Chart, next.Chart) || got.Manifest != next.Manifest {
			t.Errorf("a chart of %q is not read as it was written", content)
		}
	}
}

// A chart is compared with that of an earlier record without encoding its files.
func TestDecodedChartIsCompared(t *testing.T) {
	chart := func() *helmchart.Chart {
		c := largeChart("one")
		c.Lock = &helmchart.Lock{Digest: "d"}
		c.Values["n"], c.Schema = json.Number("12"), []byte("{}")
		c.Templates = []*helmchart.File{{Name: "templates/a.yaml", Data: []byte("a: {{ 1 }}")}}
		c.Raw = c.Files // which a record doesn't have
		return c
	}
	stored := &packedCharts{}
	if _, err := stored.packChart(chart()); err != nil {
		t.Fatal(err)
	}
	previous := storedChart{packed: &packedChart{deflated: stored.packed.deflated, size: meter{bytes: stored.packed.size.bytes, sum: stored.packed.size.sum}}}
	var err error
	if previous.chart, err = previous.packed.decode(); err != nil || previous.packed.size != stored.packed.size {
		t.Fatalf("decoded with size %+v, %v, want %+v", previous.packed.size, err, stored.packed.size)
	}
	for what, change := range map[string]func(*helmchart.Chart){
		"nothing":    func(*helmchart.Chart) {},
		"metadata":   func(c *helmchart.Chart) { c.Metadata.AppVersion = "2" },
		"lock":       func(c *helmchart.Chart) { c.Lock = nil },
		"values":     func(c *helmchart.Chart) { c.Values["n"] = 13 },
		"schema":     func(c *helmchart.Chart) { c.Schema = []byte("[]") },
		"a template": func(c *helmchart.Chart) { c.Templates[0].Data = []byte("a: {{ 2 }}") },
		"a file":     func(c *helmchart.Chart) { c.Files[0].Data[0] = 'x' },
		"its name":   func(c *helmchart.Chart) { c.Files[0].Name = "crds/b.yaml" },
		"more files": func(c *helmchart.Chart) { c.Files = append(c.Files, c.Files[0]) },
	} {
		next := chart()
		change(next)
		if got := sameChart(previous.chart, next); got != (what == "nothing") {
			t.Errorf("with another %s it is the same: %v", what, got)
		}
		charts := &packedCharts{previous: previous}
		packed, err := charts.packChart(next)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(map[string]*helmchart.Chart{"chart": next})
		if err != nil {
			t.Fatal(err)
		}
		text[len(text)-1] = chartEnd[0]
		if !packed.holds(text) || packed.size != measure(text) {
			t.Errorf("with another %s the packed chart isn't it", what)
		}
	}
}

// A record is patched without unpacking its chart, and everything else in it stays, whichever tool wrote
// it.
func TestAmendedWithoutItsChart(t *testing.T) {
	rec := sample("web", 1, helmrelease.StatusDeployed)
	rec.Chart = largeChart("one")
	enc, err := encode(rec, &packedCharts{})
	if err != nil {
		t.Fatal(err)
	}
	edits := (&recordPatch{status: helmrelease.StatusSuperseded}).edits(false)
	edited, err := editBesidePackedChart(enc.head, edits, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(edited)
	if err != nil {
		t.Fatal(err)
	}
	want, err := decode(enc.head)
	if err != nil {
		t.Fatal(err)
	}
	want.Info.Status = helmrelease.StatusSuperseded
	if !reflect.DeepEqual(got, want) {
		t.Errorf("amended:\n%+v\nwant\n%+v", got, want)
	}

	whole, err := pack(rec) // as another tool writes it
	if err != nil {
		t.Fatal(err)
	}
	if _, err := editBesidePackedChart(toText(whole), edits, nil); !errors.Is(err, errNoPackedChart) {
		t.Errorf("editing a record of another tool: %v, want %v", err, errNoPackedChart)
	}
}

// Data that is damaged, or only looks like a record with a packed chart, isn't taken for one.
func TestDamagedPackedChartIsRefused(t *testing.T) {
	rec := sample("web", 1, helmrelease.StatusDeployed)
	rec.Chart = largeChart("one")
	enc, err := encode(rec, &packedCharts{})
	if err != nil {
		t.Fatal(err)
	}
	data, err := unpackedGzip(enc.head)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{12, 16, 19, 20, 23, 24, len(data) - 12, len(data) - 8, len(data) - 1} {
		damaged := bytes.Clone(data)
		damaged[at] ^= 0x55
		if _, _, _, err := cutPackedChart(damaged, nil); err == nil {
			t.Errorf("with another byte at %d it was split", at)
		}
	}
	for _, n := range []int{0, 5, 12, 28, len(data) / 2} {
		if _, _, _, err := cutPackedChart(data[:n], nil); err == nil {
			t.Errorf("the first %d bytes of it were split", n)
		}
	}
}

func unpackedGzip(text []byte) ([]byte, error) {
	return base64.StdEncoding.DecodeString(string(text))
}

// Records that have the same chart share it once it is decoded, and are what they are without that. A plan
// reads all records of a release.
func TestSameChartIsDecodedOnce(t *testing.T) {
	encodedRecord := func(revision int, content string) []byte {
		t.Helper()
		rec := sample("web", revision, helmrelease.StatusSuperseded)
		rec.Chart = largeChart(content)
		enc, err := encode(rec, &packedCharts{})
		if err != nil {
			t.Fatal(err)
		}
		return enc.head
	}
	large := &largeRecords{}
	var charts []*helmchart.Chart
	for revision, content := range []string{"one", "one", "two", "two", "one"} {
		text := encodedRecord(revision+1, content)
		got, err := large.decode(text)
		if err != nil {
			t.Fatal(err)
		}
		want, err := decode(text)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("revision %d with a chart of %q after others is not what it is alone", revision+1, content)
		}
		charts = append(charts, got.Chart)
	}
	for i, shared := range []bool{true, false, true, false} {
		if (charts[i] == charts[i+1]) != shared {
			t.Errorf("revisions %d and %d share their chart: %v, want %v", i+1, i+2, !shared, shared)
		}
	}
}

// A record may name another chart behind the packed one. Helm takes the last one.
func TestChartBesideThePackedOneCounts(t *testing.T) {
	rec := sample("web", 1, helmrelease.StatusSuperseded)
	rec.Chart = largeChart("one")
	charts := &packedCharts{}
	enc, err := encode(rec, charts)
	if err != nil {
		t.Fatal(err)
	}
	large := &largeRecords{}
	if _, err := large.decode(enc.head); err != nil {
		t.Fatal(err)
	}
	packed, _, err := charts.packed.appendRest(nil, func(w *jsonWriter) {
		w.writeRaw(`"name":"web","version":2,"info":{"status":"superseded"},"chart":{"metadata":{"name":"other"}}}`)
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := large.decode(toText(packed))
	if err != nil {
		t.Fatal(err)
	}
	want, err := decode(toText(packed))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) || got.Chart.Metadata.Name != "other" {
		t.Errorf("chart %v, want %v", got.Chart.Metadata, want.Chart.Metadata)
	}
}

// The manifest is packed once for the records of a run, and for marking the revision before if that has the
// same one. If that has another manifest, or another chart, its content stays.
func TestManifestIsPackedOnce(t *testing.T) {
	earlier := func(chart, manifest string) []byte {
		t.Helper()
		rec := sample("web", 1, helmrelease.StatusDeployed)
		rec.Chart, rec.Manifest = largeChart(chart), manifest
		enc, err := encode(rec, &packedCharts{})
		if err != nil {
			t.Fatal(err)
		}
		return enc.head
	}
	charts := &packedCharts{}
	rec := sample("web", 2, helmrelease.StatusPendingUpgrade)
	rec.Chart, rec.Manifest = largeChart("one"), "a: <b>\n"
	if _, err := encode(rec, charts); err != nil {
		t.Fatal(err)
	}
	known := charts.manifest
	rec.Info.Description = "another"
	enc, err := encode(rec, charts)
	if err != nil {
		t.Fatal(err)
	}
	if charts.manifest != known {
		t.Error("the same manifest was packed again")
	}
	if got, err := decode(enc.head); err != nil || !reflect.DeepEqual(got.Chart, rec.Chart) || got.Manifest != rec.Manifest || got.Info.Description != "another" {
		t.Errorf("read as %+v, %v, want %+v", got, err, rec)
	}
	for _, test := range []struct {
		chart, manifest string
		same            bool
	}{{"one", "a: <b>\n", true}, {"one", "a: <c>\n", false}, {"one", "", false}, {"two", "a: <b>\n", false}} {
		text := earlier(test.chart, test.manifest)
		data, err := unpackedGzip(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, manifest, _, err := cutPackedChart(data, known); err != nil || (manifest == known) != test.same {
			t.Errorf("%q of chart %q is the known manifest: %v, %v, want %v", test.manifest, test.chart, manifest == known, err, test.same)
		}
		edited, err := editBesidePackedChart(text, (&recordPatch{status: helmrelease.StatusSuperseded}).edits(false), known)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decode(edited)
		if err != nil {
			t.Fatal(err)
		}
		want, err := decode(text)
		if err != nil {
			t.Fatal(err)
		}
		want.Info.Status = helmrelease.StatusSuperseded
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q of chart %q amended:\n%+v\nwant\n%+v", test.manifest, test.chart, got, want)
		}
		data[len(data)-trailer] ^= 0x55
		if _, _, _, err := cutPackedChart(data, known); err == nil {
			t.Errorf("%q of chart %q with another checksum was split", test.manifest, test.chart)
		}
	}
	if packed, _, err := charts.pack(&Record{Release: helmrelease.Release{Chart: largeChart("two"), Manifest: rec.Manifest}}); err != nil || charts.manifest.after != packed {
		t.Errorf("after another chart the manifest wasn't packed again: %v", err)
	}
}

// A record that is decoded apart from its chart has the same limits and errors as one that is decoded
// whole.
func TestChartDecodedApartIsChecked(t *testing.T) {
	apart := func(chart, rest string) (got, want *Record, err error) {
		t.Helper()
		packed, err := packChart([]byte(chart))
		if err != nil {
			t.Fatal(err)
		}
		data, _, err := packed.appendRest(nil, func(w *jsonWriter) { w.writeRaw(rest) })
		if err != nil {
			t.Fatal(err)
		}
		if want, err = decode(toText(data)); err != nil {
			want = nil
		}
		got, err = (&largeRecords{}).decode(toText(data))
		return got, want, err
	}
	const rest = `"name":"web","version":2,"info":{"status":"superseded"}}`
	half := strings.Repeat("0,", maxElements/2)
	for name, test := range map[string]struct {
		chart, rest string
		ok          bool
	}{
		"whole":           {`{"chart":{"metadata":{"name":"c"},"files":[null]},`, rest, true},
		"a chart of null": {`{"chart":null,`, rest, true},
		"more members":    {`{"chart":{"metadata":{"name":"c"}},"manifest":"m",`, rest, true},
		"not a chart":     {`{"chart":[],`, rest, false},
		"no chart":        {`{"manifest":"m",`, rest, true},
		"cut elsewhere":   {`{"chart":{"metadata":`, `{"name":"c"}},` + rest, true},
		"many values":     {`{"chart":{"values":{"a":[` + half + `0]}},`, `"config":{"a":[` + half + `0]},` + rest, false},
	} {
		got, want, err := apart(test.chart, test.rest)
		if (err == nil) != test.ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
		}
	}
}
