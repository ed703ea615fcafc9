package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"

	"deployer/internal/view/textfmt"
)

// JSONVersion is the version of all our JSON documents and events. It changes
// when a field is renamed or changes its meaning, which is to say never.
const JSONVersion = 1

// marshalJSON encodes a value as JSON on one line that is safe for terminals and CI logs: it
// also escapes control characters that JSON doesn't, and commands of CI systems.
func marshalJSON(value any) ([]byte, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	data = command().ReplaceAll(data, []byte(`#\u0023${1}`))
	if !bytes.ContainsFunc(data, textfmt.IsControl) {
		return data, nil
	}
	var b bytes.Buffer
	for _, r := range string(data) {
		if textfmt.IsControl(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.Bytes(), nil
}

// Format is how a result is written.
type Format string

// The formats of -o.
const (
	FormatTable Format = "table"
	FormatJSON  Format = "json"
	FormatYAML  Format = "yaml"
)

// ParseFormat accepts what -o accepts; empty means a table.
func ParseFormat(s string) (Format, error) {
	switch f := Format(s); f {
	case "":
		return FormatTable, nil
	case FormatTable, FormatJSON, FormatYAML:
		return f, nil
	}
	return "", fmt.Errorf("invalid format type %q: use table, json or yaml", s)
}

// Encode writes a value as JSON or YAML, as Helm does: JSON on one line.
func Encode(w io.Writer, f Format, value any) error {
	w = unfiltered(w) // data is for programs: JSON is escaped, YAML is written as it is (docs/output.md)
	data, err := marshalJSON(value)
	if err != nil {
		return err
	}
	if f == FormatYAML {
		data, err = yaml.JSONToYAML(data)
	} else {
		data = append(data, '\n')
	}
	if err == nil {
		_, err = w.Write(data)
	}
	return err
}
