package view

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// jsonFormat is the version of all our JSON documents and events. It changes
// when a field is renamed or changes its meaning, which is to say never.
const jsonFormat = 1

// marshal writes a value as JSON on one line that a terminal and the log of a CI
// system can be shown: control characters beyond those that JSON escapes are
// escaped too, and what a CI system would take for a command.
func marshal(value any) ([]byte, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	for _, word := range commandWords {
		data = bytes.ReplaceAll(data, []byte(word), []byte(`#\u0023`+word[2:]))
	}
	if !bytes.ContainsFunc(data, suspicious) {
		return data, nil
	}
	var b bytes.Buffer
	for _, r := range string(data) {
		if suspicious(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.Bytes(), nil
}
