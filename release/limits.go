package release

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

// Others write records too. A few bytes of gzip may unpack to any size, and a byte of
// JSON may take a hundred bytes of memory. So both sizes are limited, for reading and for
// writing.
const (
	// maxSingleSecretJSON limits a record in one Secret, in bytes of JSON. The packed data of a
	// Secret is below 800 KiB.
	maxSingleSecretJSON = 64 << 20

	// maxSplitJSON is the same for a record in several Secrets, whose packed data is
	// below maxParts times partSize.
	maxSplitJSON = 256 << 20

	// maxElements limits the objects, lists and members in the JSON of a record. A
	// manifest counts as one; most are in values and journals.
	maxElements = 1 << 19
)

// A meter measures JSON that is written to it.
type meter struct {
	bytes, elements int

	text, backslashed bool // the state between two writes
}

func measure(data []byte) (m meter) {
	_, _ = m.Write(data) // never fails
	return m
}

// Write never fails.
func (m *meter) Write(data []byte) (int, error) {
	m.bytes += len(data)
	for i := 0; i < len(data); i++ {
		if m.text && !m.backslashed { // most of a record is text
			for i < len(data)-1 && data[i] != '"' && data[i] != '\\' {
				i++
			}
		}
		switch b := data[i]; {
		case m.backslashed:
			m.backslashed = false
		case m.text:
			m.text, m.backslashed = b != '"', b == '\\'
		case b == '"':
			m.text = true
		case b == ',' || b == '{' || b == '[':
			m.elements++
		}
	}
	return len(data), nil
}

// tooLarge returns which limit a record exceeds; empty when none.
func (m *meter) tooLarge(limit int) string {
	switch {
	case m.bytes > limit:
		return "more than " + sizeText(limit)
	case m.elements > maxElements:
		return fmt.Sprintf("more than %d values", maxElements)
	}
	return ""
}

// decompress unpacks the JSON of a record from gzip, up to limit bytes.
func decompress(data []byte, limit int) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err != nil {
		return nil, err
	}
	m := measure(out)
	if over := m.tooLarge(limit); over != "" {
		return nil, fmt.Errorf("it unpacks to %s", over)
	}
	return out, nil
}
