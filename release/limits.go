package release

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
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

	// usualSize is more than the size of nearly all records. Larger ones are unpacked one
	// at a time, to limit the memory of a list.
	usualSize = 1 << 20
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

// decompress unpacks the JSON of a record from gzip, up to limit bytes. It allocates only
// the size that the gzip data announces.
func decompress(data []byte, limit int) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	expected := announcedSize(data)
	if expected > limit {
		return nil, fmt.Errorf("it unpacks to more than %s, or is damaged", sizeText(limit))
	}
	out := make([]byte, expected+1)
	n, err := io.ReadFull(r, out)
	switch {
	case err == nil:
		return nil, fmt.Errorf("it unpacks to more than the %s that it announces", sizeText(expected))
	case err != io.EOF && err != io.ErrUnexpectedEOF || n < expected:
		return nil, err
	}
	out = out[:n]
	m := measure(out)
	if over := m.tooLarge(limit); over != "" {
		return nil, fmt.Errorf("it unpacks to %s", over)
	}
	return out, nil
}

// unpackedSize returns the unpacked size that data.release of a Secret announces.
func unpackedSize(text []byte) int {
	if data, err := base64.StdEncoding.DecodeString(string(text[max(0, (len(text)-8)/4*4):])); err == nil {
		return announcedSize(data)
	}
	return len(text)
}

// announcedSize returns the unpacked size that gzip data announces, modulo 4 GiB. It may
// be wrong. (RFC 1952)
func announcedSize(data []byte) int {
	if len(data) < 4 {
		return 0
	}
	return int(binary.LittleEndian.Uint32(data[len(data)-4:]))
}
