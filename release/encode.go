package release

import (
	"fmt"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
)

const (
	// maxSecret is how much data one Secret may hold.
	// https://kubernetes.io/docs/concepts/configuration/secret/#restriction-data-size
	maxSecret = 1 << 20

	// spareSize is left free in a Secret for later additions: a longer description,
	// results of hooks.
	spareSize = 8 << 10

	// A planned entry of the journal grows by a random UID and a fingerprint when its object is done. An
	// entry that is new then has a name, too. In bytes of a Secret:
	plannedEntrySize = 64
	newEntrySize     = 128

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

// partsAfter is how many parts a record has at the end of its run, at most.
func (e *encoded) partsAfter(growth growth) int {
	n := 0
	for _, b := range e.bundles {
		if n += b.count; b.label == labelEntries {
			n += (len(b.parts[b.count-1]) + growth.bytes) / partSize
		}
	}
	return n
}

// encode packs a record in the first of these forms into which it fits:
//
//   - whole, in one Secret
//   - whole, with the entries of its journal in parts
//   - the same two without what a rollback doesn't need of the chart
//   - without its body, which is in parts; with the entries of its journal in parts, too
//
// It doesn't change rec. The error is a *SizeError if the record doesn't fit at all.
func encode(rec *Record) (*encoded, error) {
	enc, err := encodeWhole(rec)
	if enc == nil && err == nil {
		enc, err = splitRecord(slim(rec))
	}
	if err != nil {
		return nil, fmt.Errorf("encoding release %s/%s: %w", rec.Namespace, rec.Name, err)
	}
	return enc, nil
}

// encodeWhole encodes a record with its body in the head; nil if it doesn't fit. A record that was
// split once stays split: its parts are stored.
func encodeWhole(rec *Record) (*encoded, error) {
	if rec.stored.has(labelBody) {
		return nil, nil
	}
	enc, leastSize, err := encodeHead(rec, wholeRecord)
	if enc != nil || err != nil || leastSize-slimmedSize(rec)*4/3 > maxSecret {
		return enc, err
	}
	enc, _, err = encodeHead(slim(rec), wholeRecord)
	return enc, err
}

func wholeRecord(rec *Record) any       { return rec }
func recordWithoutBody(rec *Record) any { return headOf(rec) }

// splitRecord encodes a record with its body in parts.
func splitRecord(rec *Record) (*encoded, error) {
	body, isReadable, err := bodyBundle(rec)
	if err != nil {
		return nil, err
	}
	enc, _, err := encodeHead(rec, recordWithoutBody)
	if err != nil {
		return nil, err
	}
	if enc == nil {
		enc, isReadable = &encoded{}, false
	}
	enc.bundles = append([]bundle{body}, enc.bundles...)
	if !isReadable || enc.partsAfter(growthOf(rec)) > maxParts {
		return nil, &SizeError{Namespace: rec.Namespace, Name: rec.Name, Size: describeSize(rec, enc)}
	}
	return enc, nil
}

// bodyBundle is the body of a record. It isn't packed again when it is stored: it doesn't change.
func bodyBundle(rec *Record) (_ bundle, isReadable bool, err error) {
	for _, ref := range rec.stored.bundles {
		if ref.label == labelBody {
			return bundle{bundleRef: ref}, true, nil
		}
	}
	packed, m, err := pack(bodyOf(rec))
	if err != nil {
		return bundle{}, false, err
	}
	return newBundle(labelBody, packed), m.tooLarge(maxSplitJSON) == "", nil
}

// encodeHead packs the head of a record, in a form, with the entries of its journal if both fit into
// one Secret, otherwise with the entries in parts. If it doesn't fit even so, enc is nil, and the
// head has at least leastSize bytes in either form.
func encodeHead(rec *Record, form func(*Record) any) (enc *encoded, leastSize int, err error) {
	growth := growthOf(rec)
	sizeWithEntries := 0 // unknown if their growth alone is too large
	if growth.bytes <= maxSecret {
		packed, m, err := pack(form(rec))
		if err != nil {
			return nil, 0, err
		}
		enc := &encoded{head: toText(packed)}
		m.elements += growth.elements
		sizeWithEntries = len(enc.head)
		if sizeWithEntries+growth.bytes <= maxSecret && m.tooLarge(maxSingleSecretJSON) == "" {
			return enc, sizeWithEntries, nil
		}
	}
	if rec.Journal == nil {
		return nil, sizeWithEntries, nil
	}
	entries, m, err := pack(entriesOf(rec))
	if err != nil {
		return nil, 0, err
	}
	m.elements += growth.elements
	leastSize = sizeWithEntries - len(entries)*4/3
	if leastSize > maxSecret || m.tooLarge(maxSplitJSON) != "" {
		return nil, leastSize, nil
	}
	packed, m, err := pack(form(withoutEntries(rec)))
	if err != nil {
		return nil, 0, err
	}
	enc = &encoded{head: toText(packed), bundles: []bundle{newBundle(labelEntries, entries)}}
	sizeWithoutEntries := len(enc.head)
	if sizeWithoutEntries+growth.spare > maxSecret || m.tooLarge(maxSingleSecretJSON) != "" {
		return nil, sizeWithoutEntries, nil
	}
	return enc, sizeWithoutEntries, nil
}

// A growth is the room that a record must leave for what is known only later in its run; zero when
// its run has ended.
type growth struct {
	spare    int // bytes of the head without the entries of the journal
	bytes    int // with them
	elements int // of the entries
}

func growthOf(rec *Record) growth {
	if !isUnfinished(rec.Info.Status) {
		return growth{}
	}
	planned, done := 0, 0
	if rec.Journal != nil {
		for _, state := range rec.Journal.Objects {
			if state.UID == "" {
				planned++
			} else {
				done++
			}
		}
	}
	others := max(0, objectCount(rec)-planned-done)
	return growth{
		spare:    spareSize,
		bytes:    spareSize + planned*plannedEntrySize + others*newEntrySize,
		elements: (planned + others) * entryElements,
	}
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

// slimmedSize returns how many bytes slimming removes at most, before compression,
// including base64 in JSON.
func slimmedSize(rec *Record) int {
	if rec.Chart == nil {
		return 0
	}
	n := len(rec.Chart.Schema)
	for _, file := range slices.Concat(rec.Chart.Templates, rec.Chart.Files) {
		n += len(file.Name) + len(file.Data) + 64
	}
	return n * 4 / 3
}
