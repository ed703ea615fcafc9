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
)

// gzipMagic is how Helm tells compressed records from ancient plain ones.
func gzipMagic() []byte { return []byte{0x1f, 0x8b, 0x08} }

// pack is Helm's encoding without the outer base64. It also measures the JSON. A run packs its record several times: the best
// compression, which Helm uses, takes twice as long for one or two percent.
func pack(v any) ([]byte, *meter, error) {
	var out bytes.Buffer
	size := &meter{}
	zipped := gzip.NewWriter(&out)
	err := json.NewEncoder(io.MultiWriter(size, zipped)).Encode(v)
	if err := cmp.Or(err, zipped.Close()); err != nil {
		return nil, nil, err
	}
	return out.Bytes(), size, nil
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
