package release

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"reflect"
	"sync"

	helmchart "helm.sh/helm/v3/pkg/chart"
	corev1 "k8s.io/api/core/v1"
)

// Most of a record is its chart, which is the same in each of the five or so times that a run writes
// records, and mostly the same as in the revision before. Packing it takes longer than all else that
// is done with a record. So the chart comes first in the JSON and is packed by itself, and
// the packed bytes are used again.
//
// The manifest comes next and is packed by itself, too, for the records of this run.
//
// What is stored is one gzip member as ever. Its header has an extra field that says where the chart
// ends; readers that don't know it pass over it. (RFC 1952, 2.3.1.1)

// A packedChart is `{"chart":…,` as deflate that ends at a byte, without an end of the stream.
type packedChart struct {
	deflated []byte
	size     meter // of the text
}

// A packedManifest is `"manifest":…,` packed likewise, as it follows a chart.
type packedManifest struct {
	after    *packedChart
	manifest string
	deflated []byte
	size     meter // of the text of both
}

const (
	chartStart = `{"chart":`
	chartEnd   = ","

	fixedHeader = 10 // bytes of a gzip header without extra fields
	extraLength = 16 // of ours, with its name and length
	trailer     = 8  // bytes of CRC-32 and size at the end
)

// packedCharts remembers what was packed last. The zero value remembers nothing.
type packedCharts struct {
	mu       sync.Mutex
	chart    *helmchart.Chart
	packed   *packedChart
	previous storedChart     // of an earlier record
	manifest *packedManifest // after packed; nil before
}

// A storedChart is a chart as a record has it. The zero value is none.
type storedChart struct {
	packed *packedChart
	chart  *helmchart.Chart // what it holds; nil if it wasn't decoded
}

// pack packs the chart and the manifest of a record, or gives what was packed before if that is the same. A
// record without a manifest has no packed one.
func (p *packedCharts) pack(rec *Record) (*packedChart, *packedManifest, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	chart, err := p.packChart(rec.Chart)
	if err != nil || rec.Manifest == "" {
		return chart, nil, err
	}
	if p.manifest == nil || p.manifest.after != chart || p.manifest.manifest != rec.Manifest {
		p.manifest, err = chart.packManifest(rec.Manifest)
	}
	return chart, p.manifest, err
}

func (p *packedCharts) packChart(chart *helmchart.Chart) (*packedChart, error) {
	if p.packed != nil && p.chart == chart {
		return p.packed, nil
	}
	packed := p.previous.packed
	if !sameChart(p.previous.chart, chart) {
		text, err := json.Marshal(map[string]*helmchart.Chart{"chart": chart})
		if err != nil {
			return nil, err
		}
		text[len(text)-1] = chartEnd[0] // the record goes on
		switch {
		case packed == nil || !packed.holds(text):
			if packed, err = packChart(text); err != nil {
				return nil, err
			}
		case p.previous.chart == nil: // decoding would have counted its elements
			packed.size = measure(text)
		}
	}
	p.chart, p.packed = chart, packed
	return packed, nil
}

// sameChart reports whether a record would have the same JSON of both charts. The files are compared as they are:
// large ones take a while to encode. Either may be nil, and is unlike any chart then.
func sameChart(one, other *helmchart.Chart) bool {
	if one == nil || other == nil || !reflect.DeepEqual(one.Templates, other.Templates) || !reflect.DeepEqual(one.Files, other.Files) {
		return false
	}
	rest := func(c *helmchart.Chart) ([]byte, error) {
		return json.Marshal(&helmchart.Chart{Metadata: c.Metadata, Lock: c.Lock, Values: c.Values, Schema: c.Schema})
	}
	a, errA := rest(one)
	b, errB := rest(other)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

func packChart(text []byte) (*packedChart, error) {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Flush(); err != nil {
		return nil, err
	}
	return &packedChart{deflated: out.Bytes(), size: measure(text)}, nil
}

// packManifest packs the manifest that follows the chart. An upgrade does it once: the best compression takes
// twice as long for one or two percent.
func (p *packedChart) packManifest(manifest string) (*packedManifest, error) {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.DefaultCompression)
	if err != nil {
		return nil, err
	}
	size := p.size
	to := &jsonWriter{to: io.MultiWriter(&size, w)}
	to.writeRaw(`"manifest":`)
	to.writeText(manifest)
	to.writeRaw(",")
	if err := cmp.Or(to.err, w.Flush()); err != nil {
		return nil, err
	}
	return &packedManifest{after: p, manifest: manifest, deflated: out.Bytes(), size: size}, nil
}

// holds reports whether a text is what was packed.
func (p *packedChart) holds(text []byte) bool {
	if p.size.bytes != len(text) || p.size.sum != crc32.ChecksumIEEE(text) {
		return false
	}
	r := flate.NewReader(bytes.NewReader(p.deflated))
	chunk := make([]byte, 32<<10)
	for len(text) > 0 {
		n, err := io.ReadFull(r, chunk[:min(len(chunk), len(text))])
		if err != nil || !bytes.Equal(chunk[:n], text[:n]) {
			return false
		}
		text = text[n:]
	}
	return true
}

// appendRest makes gzip of the packed chart, the packed manifest, which may be nil, and the rest of a record's JSON,
// which write writes. An upgrade does it three times: the best compression takes twice as long for one or two
// percent.
func (p *packedChart) appendRest(manifest *packedManifest, write func(*jsonWriter)) ([]byte, *meter, error) {
	var out bytes.Buffer
	out.Write([]byte{0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 2, 255, extraLength, 0, 'D', 'C', extraLength - 4, 0})
	for _, n := range []uint32{uint32(len(p.deflated)), uint32(p.size.bytes), p.size.sum} {
		out.Write(binary.LittleEndian.AppendUint32(nil, n))
	}
	out.Write(p.deflated)
	w, err := flate.NewWriter(&out, flate.DefaultCompression)
	if err != nil {
		return nil, nil, err
	}
	size := p.size
	if manifest != nil {
		out.Write(manifest.deflated)
		size = manifest.size
	}
	to := &jsonWriter{to: io.MultiWriter(&size, w)}
	write(to)
	if err := cmp.Or(to.err, w.Close()); err != nil {
		return nil, nil, err
	}
	end := binary.LittleEndian.AppendUint32(nil, size.sum)
	out.Write(binary.LittleEndian.AppendUint32(end, uint32(size.bytes)))
	return out.Bytes(), &size, nil
}

// errNoPackedChart says that a record isn't gzip that appendRest has made.
var errNoPackedChart = errors.New("its chart isn't packed by itself")

const packedStart = fixedHeader + 2 + extraLength // where a packed chart begins

// findPackedChart finds the chart in what appendRest has made. It unpacks nothing.
func findPackedChart(data []byte) (*packedChart, error) {
	const start = packedStart
	if len(data) < start+trailer || data[3] != 4 || !bytes.Equal(data[:3], gzipMagic()) || data[10] != extraLength || data[11] != 0 ||
		!bytes.Equal(data[12:16], []byte{'D', 'C', extraLength - 4, 0}) {
		return nil, errNoPackedChart
	}
	length := int(binary.LittleEndian.Uint32(data[16:]))
	chart := &packedChart{size: meter{bytes: int(binary.LittleEndian.Uint32(data[20:])), sum: binary.LittleEndian.Uint32(data[24:])}}
	total := announcedSize(data)
	if length > len(data)-trailer-start || chart.size.bytes > total || total > maxSingleSecretJSON {
		return nil, errNoPackedChart
	}
	chart.deflated = data[start : start+length]
	return chart, nil
}

// cutPackedChart is the reverse of appendRest. It doesn't unpack the chart, nor the manifest if it is the
// known one, which may be nil. Any other manifest is in rest, and the returned one is nil.
func cutPackedChart(data []byte, known *packedManifest) (chart *packedChart, manifest *packedManifest, rest []byte, err error) {
	if chart, err = findPackedChart(data); err != nil {
		return nil, nil, nil, err
	}
	start, before := packedStart+len(chart.deflated), chart.size
	if known != nil && known.after.sameText(chart) && bytes.HasPrefix(data[start:], known.deflated) {
		manifest, start, before = known, start+len(known.deflated), known.size
	}
	rest, err = unpackRest(data, start, before)
	return chart, manifest, rest, err
}

// unpackRest unpacks the end of a record's JSON. before is the size of what comes before it; its own packed
// data begin at start.
func unpackRest(data []byte, start int, before meter) ([]byte, error) {
	end := len(data) - trailer
	if start > end || before.bytes > announcedSize(data) {
		return nil, errNoPackedChart
	}
	rest := make([]byte, announcedSize(data)-before.bytes)
	r := flate.NewReader(bytes.NewReader(data[start:end]))
	if _, err := io.ReadFull(r, rest); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(r, make([]byte, 1)); err != io.EOF || crc32.Update(before.sum, crc32.IEEETable, rest) != binary.LittleEndian.Uint32(data[end:]) {
		return nil, errNoPackedChart
	}
	return rest, nil
}

// decode decodes the chart, and counts the elements of its text.
func (p *packedChart) decode() (*helmchart.Chart, error) {
	text := make([]byte, p.size.bytes)
	if _, err := io.ReadFull(flate.NewReader(bytes.NewReader(p.deflated)), text); err != nil {
		return nil, err
	}
	data, begins := bytes.CutPrefix(text, []byte(chartStart))
	data, ends := bytes.CutSuffix(data, []byte(chartEnd))
	size := measure(text)
	if !begins || !ends || size.sum != p.size.sum || size.tooLarge(maxSingleSecretJSON) != "" {
		return nil, errNoPackedChart
	}
	p.size = size
	var chart *helmchart.Chart
	err := json.Unmarshal(data, &chart)
	return chart, err
}

// equal reports whether two packed charts are the same text.
func (p *packedChart) equal(other *packedChart) bool {
	return p.sameText(other) && bytes.Equal(p.deflated, other.deflated)
}

// sameText reports whether the texts of two packed charts have the same length and checksum.
func (p *packedChart) sameText(other *packedChart) bool {
	return p.size.bytes == other.size.bytes && p.size.sum == other.size.sum
}

// packRecord packs a record with its body.
func packRecord(rec *Record, charts *packedCharts) ([]byte, *meter, error) {
	if rec.Chart == nil {
		return packWith(func(w *jsonWriter) {
			w.writeRaw("{")
			w.writeRecordMembers(rec)
		})
	}
	chart, manifest, err := charts.pack(rec)
	if err != nil {
		return nil, nil, err
	}
	rest := *rec
	rest.Manifest = ""
	return chart.appendRest(manifest, func(w *jsonWriter) { w.writeRecordMembers(&rest) })
}

// PackAhead packs what takes longest of a record that is going to be written soon, its chart and its manifest. It
// makes no requests. A write of the record that comes in the meantime waits for it.
func (s *Store) PackAhead(rec *Record) {
	if rec.Chart != nil {
		s.usePrefetchedChart()
		_, _, _ = s.charts.pack(rec) // the write has the error
	}
}

// usePrefetchedChart looks for a packed chart in a record that was read, unless one is known.
func (s *Store) usePrefetchedChart() {
	s.charts.mu.Lock()
	defer s.charts.mu.Unlock()
	if s.charts.packed != nil || s.charts.previous.packed != nil {
		return
	}
	if s.charts.previous = s.largeRecords.lastChart(); s.charts.previous.packed == nil {
		s.charts.previous.packed = s.prefetchedChart()
	}
}

// lastManifest is what was packed last; nil before.
func (p *packedCharts) lastManifest() *packedManifest {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.manifest
}

// prefetchedChart is the packed chart of a record that was read; nil when there is none.
func (s *Store) prefetchedChart() (chart *packedChart) {
	s.prefetched.Range(func(_, value any) bool {
		secret, _ := value.(*corev1.Secret)
		data, err := base64.StdEncoding.DecodeString(string(secret.Data[dataKey]))
		if err == nil {
			chart, err = findPackedChart(data)
		}
		return err != nil
	})
	return chart
}
