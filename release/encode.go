package release

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"

	"deployer/internal/program"
)

const (
	// maxSecret is how much data one Secret may hold.
	// https://kubernetes.io/docs/concepts/configuration/secret/#restriction-data-size
	maxSecret = 1 << 20

	// spareSize is left free in a Secret for later additions: a longer description,
	// results of hooks.
	spareSize = 8 << 10

	// entryGrowth is how much an entry of the journal grows when its object is done, by a random UID and a
	// fingerprint, in bytes of a Secret.
	entryGrowth = 64

	// entryElements is how many elements an entry has, see meter.
	entryElements = 4
)

// encoded is a record as it is stored.
type encoded struct {
	head    []byte   // data.release of the Secret that Helm sees
	bundles []bundle // nil when head is the whole record
}

func (e *encoded) refs() []bundleRef {
	var out []bundleRef
	for _, b := range e.bundles {
		out = append(out, b.bundleRef)
	}
	return out
}

// partsAfter is how many parts a record has at the end of its run, at most, whose journal grows by so many bytes.
func (e *encoded) partsAfter(growth int) int {
	n := 0
	for _, b := range e.bundles {
		if n += b.count; b.label == labelEntries {
			n += (len(b.parts[b.count-1]) + growth) / partSize
		}
	}
	return n
}

// A form is a way to store a record.
type form struct {
	slim         bool // without what a rollback doesn't need of the chart
	bodyApart    bool // manifest, chart and such are in parts, see body
	entriesApart bool // the entries of the journal are in parts
}

// forms are the forms from the smallest record to the largest. A function, because the list mustn't change.
func forms() []form {
	return []form{
		{}, {entriesApart: true}, {slim: true}, {slim: true, entriesApart: true},
		{slim: true, bodyApart: true}, {slim: true, bodyApart: true, entriesApart: true},
	}
}

// errTooLarge says that a record is too large even for several Secrets.
var errTooLarge = errors.New("is too large to be recorded")

// encode packs a record in the first of the forms into which it fits, also at the end of its run. A record whose body is in
// parts stays so, because they are stored. It doesn't change rec. The error is errTooLarge if the record doesn't fit at all.
func encode(rec *Record) (*encoded, error) {
	var enc *encoded
	for _, f := range forms() {
		if !f.bodyApart && hasBundle(rec.stored.bundles, labelBody) || f.entriesApart && rec.Journal == nil {
			continue
		}
		var fits bool
		var err error
		if enc, fits, err = f.encode(rec); err != nil {
			return nil, fmt.Errorf("encoding release %s/%s: %w", rec.Namespace, rec.Name, err)
		}
		if fits {
			return enc, nil
		}
	}
	return nil, fmt.Errorf("encoding release %s/%s: %w", rec.Namespace, rec.Name, program.WithHint(
		fmt.Errorf("release %s/%s %w: %s", rec.Namespace, rec.Name, errTooLarge, describeSize(rec, enc)),
		"make the chart smaller (the largest entries come first), or split it into several releases"))
}

// A piece of a record is packed by itself: the head, or a bundle.
type piece struct {
	label   string // of a bundle; empty for the head
	content any
	maxJSON int // bytes
	growing int // entries of the journal that the run will add or complete
}

// encode packs a record in this form. fits says whether it can be written and read again, also at the end of its run.
func (f form) encode(rec *Record) (enc *encoded, fits bool, err error) {
	enc = &encoded{}
	growing, room := growingEntries(rec), 0 // room is what the head may still need
	if isUnfinished(rec.Info.Status) {
		room = spareSize
	}
	if !f.entriesApart {
		room += growing * entryGrowth
	}
	if room > maxSecret {
		return enc, false, nil
	}
	fits = true
	for _, p := range f.pieces(rec, growing) {
		stored := slices.IndexFunc(rec.stored.bundles, func(b bundleRef) bool { return b.label == labelBody && p.label == labelBody })
		if stored >= 0 { // it doesn't change, so it isn't packed again
			enc.bundles = append(enc.bundles, bundle{bundleRef: rec.stored.bundles[stored]})
			continue
		}
		packed, m, err := pack(p.content)
		if err != nil {
			return nil, false, err
		}
		m.elements += p.growing * entryElements
		fits = fits && m.tooLarge(p.maxJSON) == ""
		if p.label != "" {
			enc.bundles = append(enc.bundles, newBundle(p.label, packed))
			continue
		}
		enc.head = toText(packed)
		fits = fits && len(enc.head)+room <= maxSecret
	}
	return enc, fits && enc.partsAfter(growing*entryGrowth) <= maxParts, nil
}

// pieces are the pieces of a record in this form, the head last.
func (f form) pieces(rec *Record, growing int) (out []piece) {
	if f.slim {
		rec = slim(rec)
	}
	if f.bodyApart {
		out = append(out, piece{labelBody, bodyOf(rec), maxSplitJSON, 0})
	}
	if f.entriesApart {
		out = append(out, piece{labelEntries, entriesOf(rec), maxSplitJSON, growing})
		rec, growing = withoutEntries(rec), 0
	}
	var content any = rec
	if f.bodyApart {
		content = headOf(rec)
	}
	return append(out, piece{"", content, maxSingleSecretJSON, growing})
}

// growingEntries returns how many entries of a record's journal its run will add or complete, at most.
func growingEntries(rec *Record) int {
	if !isUnfinished(rec.Info.Status) {
		return 0
	}
	count, done := objectCount(rec), 0
	if rec.Journal != nil {
		count = max(count, len(rec.Journal.Objects))
		for _, state := range rec.Journal.Objects {
			if state.UID != "" {
				done++
			}
		}
	}
	return count - done
}

// objectCount returns an upper estimate of a record's number of objects.
func objectCount(rec *Record) int {
	return strings.Count("\n"+rec.Manifest, "\nkind:") + strings.Count(rec.Manifest, "\n  kind:") + len(rec.Hooks)
}

// slim returns a copy of rec without what is only needed to render the chart again.
// Rollback needs manifest, hooks, notes and values. crds/ stay because package deploy
// reads them from stored charts.
func slim(rec *Record) *Record {
	out := *rec
	out.Slim = true
	if rec.Chart == nil {
		return &out
	}
	out.Chart = &helmchart.Chart{Metadata: rec.Chart.Metadata, Lock: rec.Chart.Lock, Values: rec.Chart.Values}
	for _, file := range rec.Chart.Files {
		if strings.HasPrefix(file.Name, "crds/") {
			out.Chart.Files = append(out.Chart.Files, file)
		}
	}
	return &out
}

// describeSize says how large a record is, and what it consists of, the largest parts first.
func describeSize(rec *Record, enc *encoded) string {
	stored := len(enc.head)
	for _, b := range enc.bundles {
		for _, part := range b.parts {
			stored += len(part)
		}
	}
	contents := map[string]any{
		"manifest": rec.Manifest, "hooks": rec.Hooks, "values given": rec.Config, "notes": rec.Info.Notes, "journal": rec.Journal,
	}
	if rec.Chart != nil {
		contents["chart values"], contents["chart templates"], contents["chart files"] = rec.Chart.Values, rec.Chart.Templates, rec.Chart.Files
	}
	sizes := map[string]int{} // before packing
	for name, content := range contents {
		data, _ := json.Marshal(content) // encoding it has succeeded before
		if len(data) > 1<<10 {
			sizes[name] = len(data)
		}
	}
	var texts []string
	for _, name := range slices.SortedFunc(maps.Keys(sizes), func(a, b string) int { return cmp.Or(sizes[b]-sizes[a], strings.Compare(a, b)) }) {
		texts = append(texts, name+" "+sizeText(sizes[name]))
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

// pack is Helm's encoding without the outer base64. It also measures the JSON. A run packs its record several times: the best
// compression, which Helm uses, takes twice as long for one or two percent.
func pack(v any) ([]byte, *meter, error) { return packAt(gzip.DefaultCompression, v) }

func packAt(level int, v any) ([]byte, *meter, error) {
	var out bytes.Buffer
	size := &meter{}
	zipped, _ := gzip.NewWriterLevel(&out, level) // which fails for levels that there aren't
	err := json.NewEncoder(io.MultiWriter(size, zipped)).Encode(v)
	if err := cmp.Or(err, zipped.Close()); err != nil {
		return nil, nil, err
	}
	return out.Bytes(), size, nil
}

func toText(packed []byte) []byte {
	return base64.StdEncoding.AppendEncode(nil, packed)
}
