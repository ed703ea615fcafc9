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

// gzipMagic is how Helm tells compressed records from ancient plain ones.
func gzipMagic() []byte { return []byte{0x1f, 0x8b, 0x08} }

// pack is Helm's encoding without the outer base64.
func pack(v any) ([]byte, error) {
	packed, _, err := packWith(func(w io.Writer) error { return json.NewEncoder(w).Encode(v) })
	return packed, err
}

// packWith packs what write writes, and measures it.
func packWith(write func(io.Writer) error) ([]byte, *meter, error) {
	var buf bytes.Buffer
	m := &meter{}
	w, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return nil, nil, err
	}
	if err := write(io.MultiWriter(m, w)); err != nil {
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
// is, also fields unknown to our types. It adds no member; a record without info is an error. known is a packed
// manifest that it may have; nil for none.
func editJSON(text []byte, edits map[string]map[string]any, known *packedManifest) ([]byte, error) {
	if edited, err := editBesidePackedChart(text, edits, known); err == nil {
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
