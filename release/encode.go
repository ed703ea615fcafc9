package release

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"
)

const (
	// maxSecret is how much data one Secret may hold.
	// https://kubernetes.io/docs/concepts/configuration/secret/#restriction-data-size
	maxSecret = 1 << 20

	// spareSize is left free in a Secret for later additions: a longer description,
	// results of hooks.
	spareSize = 8 << 10
)

// gzipMagic is how Helm tells compressed records from ancient plain ones.
func gzipMagic() []byte { return []byte{0x1f, 0x8b, 0x08} }

// encoded is a record as it is stored.
type encoded struct {
	head   []byte   // data.release of the Secret that Helm sees
	parts  [][]byte // nil when head is the whole record
	digest string   // of the parts together; empty without
}

// encode packs a record: as a whole if it fits into one Secret, else without what a
// rollback doesn't need, else in parts. It doesn't change rec. The error is a *SizeError
// if it doesn't fit at all.
func encode(rec *Record) (*encoded, error) { return encodeWith(rec, &packedCharts{}) }

// encodeWith is encode that uses again what was packed before.
func encodeWith(rec *Record, charts *packedCharts) (*encoded, error) {
	slimRecord := slim(rec)
	if rec.stored.digest != "" {
		return splitRecord(slimRecord) // once split, it stays split: the head must keep referring to the parts
	}
	whole, m, err := packRecord(rec, charts)
	if err != nil {
		return nil, fmt.Errorf("encoding release %s/%s: %w", rec.Namespace, rec.Name, err)
	}
	text := toText(whole)
	if len(text)+reservedSize(rec) <= maxSecret && m.tooLarge(maxSingleSecretJSON) == "" {
		return &encoded{head: text}, nil
	}
	if len(text)+reservedSize(rec)-slimmedSize(rec)*4/3 > maxSecret {
		return splitRecord(slimRecord) // slimming can't save enough
	}
	packed, m, err := packMeasured(slimRecord)
	if err != nil {
		return nil, fmt.Errorf("encoding release %s/%s: %w", rec.Namespace, rec.Name, err)
	}
	if text := toText(packed); len(text)+reservedSize(rec) <= maxSecret && m.tooLarge(maxSingleSecretJSON) == "" {
		return &encoded{head: text}, nil
	}
	return splitRecord(slimRecord)
}

// slimmedSize returns how many bytes slimming removes at most, before compression,
// including base64 in JSON.
func slimmedSize(rec *Record) int {
	if rec.Chart == nil {
		return 0
	}
	n := len(rec.Chart.Schema)
	for _, file := range append(rec.Chart.Templates[:len(rec.Chart.Templates):len(rec.Chart.Templates)], rec.Chart.Files...) {
		n += len(file.Name) + len(file.Data) + 64
	}
	return n * 4 / 3
}

// reservedSize returns the room that a record must leave for later entries of its
// journal; none when its run has ended.
func reservedSize(rec *Record) int {
	if !isUnfinished(rec.Info.Status) {
		return 0
	}
	// 128 bytes hold a packed entry of the journal: a random UID, a fingerprint, a known name.
	return spareSize + 128*max(0, objectCount(rec)-finishedObjects(rec))
}

// finishedObjects counts those that have their size already: planned ones grow.
func finishedObjects(rec *Record) int {
	n := 0
	if rec.Journal != nil {
		for _, state := range rec.Journal.Objects {
			if state.UID != "" {
				n++
			}
		}
	}
	return n
}

// objectCount returns an upper estimate of a record's number of objects.
func objectCount(rec *Record) int {
	return strings.Count("\n"+rec.Manifest, "\nkind:") + strings.Count(rec.Manifest, "\n  kind:") + len(rec.Hooks)
}

// pack is Helm's encoding without the outer base64. It streams the JSON into the
// compressor, because memory is scarce when records are written.
func pack(v any) ([]byte, error) {
	packed, _, err := packMeasured(v)
	return packed, err
}

// packMeasured is pack that also returns the size of the JSON.
func packMeasured(v any) ([]byte, *meter, error) {
	var buf bytes.Buffer
	m := &meter{}
	w, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return nil, nil, err
	}
	if err := json.NewEncoder(io.MultiWriter(m, w)).Encode(v); err != nil {
		return nil, nil, err
	}
	if err := w.Close(); err != nil {
		return nil, nil, err
	}
	return buf.Bytes(), m, nil
}

func toText(packed []byte) []byte {
	return base64.StdEncoding.AppendEncode(nil, packed)
}

// unpack returns the JSON of data.release: base64 of gzip, or of plain JSON as in the
// first Helm 3.
func unpack(text []byte) ([]byte, error) {
	if len(text) == 0 {
		return nil, errors.New("it has no data.release")
	}
	data, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		return nil, fmt.Errorf("data.release: %w", err)
	}
	if len(data) > 3 && bytes.Equal(data[:3], gzipMagic()) {
		return decompress(data, maxSingleSecretJSON)
	}
	return data, nil
}

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

// editJSON changes fields of members in the JSON of data.release. All else stays as it
// is, also fields unknown to our types. It adds no member; a record without info is an error.
func editJSON(text []byte, edits map[string]map[string]any) ([]byte, error) {
	if edited, err := editBesidePackedChart(text, edits); err == nil {
		return edited, nil
	}
	data, err := unpack(text)
	if err != nil {
		return nil, err
	}
	var record map[string]json.RawMessage
	if err := json.Unmarshal(data, &record); err != nil {
		return nil, err
	}
	if err := editMembers(record, edits); err != nil {
		return nil, err
	}
	packed, err := pack(record)
	if err != nil {
		return nil, err
	}
	return toText(packed), nil
}

func editMember(data json.RawMessage, set map[string]any) (json.RawMessage, error) {
	var member map[string]json.RawMessage
	if err := json.Unmarshal(data, &member); err != nil {
		return nil, err
	}
	if member == nil {
		return data, nil // null
	}
	for key, value := range set {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		member[key] = text
	}
	return json.Marshal(member)
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
