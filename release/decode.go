package release

import (
	"encoding/json"
	"errors"
	"slices"

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
