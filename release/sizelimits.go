package release

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
)

// Records come from the cluster, where others write them too. A few bytes of gzip
// unpack to as much as one likes, and a few bytes of JSON become a hundred of
// memory each; so both are bounded, for reading and for writing.
const (
	// maxWhole is the largest record of one Secret, in bytes of JSON. What the
	// Secret holds of packed data is below 800 KiB.
	maxWhole = 64 << 20

	// maxJoined is the same for a record in several Secrets, whose packed data is
	// below maxParts times partSize.
	maxJoined = 256 << 20

	// maxElements is how many objects, lists and members the JSON of a record has at
	// most. A manifest is one of them; values and journals are most of the rest.
	maxElements = 1 << 19

	// usualSize is what nearly all records are below. Larger ones are unpacked one at
	// a time, so that a list needs the memory for one.
	usualSize = 1 << 20
)

// A meter counts the bytes and elements of JSON that is written to it.
type meter struct {
	bytes, elements   int
	text, backslashed bool
}

// Write never fails.
func (m *meter) Write(data []byte) (int, error) {
	m.bytes += len(data)
	for _, b := range data {
		switch {
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

// tooLarge says by what a record is too large to be read; empty when it isn't.
func (m *meter) tooLarge(limit int) string {
	switch {
	case m.bytes > limit:
		return "more than " + size(limit)
	case m.elements > maxElements:
		return fmt.Sprintf("more than %d values", maxElements)
	}
	return ""
}

// decompress unpacks gzip of at most limit bytes that is the JSON of a record. It
// takes no more memory than the gzip has announced.
func decompress(data []byte, limit int) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	expected := announcedSize(data)
	if expected > limit {
		return nil, fmt.Errorf("it unpacks to more than %s, or is damaged", size(limit))
	}
	out := make([]byte, expected+1)
	n, err := io.ReadFull(r, out)
	switch {
	case err == nil:
		return nil, fmt.Errorf("it unpacks to more than the %s that it announces", size(expected))
	case err != io.EOF && err != io.ErrUnexpectedEOF || n < expected:
		return nil, err
	}
	out = out[:n]
	var m meter
	_, _ = m.Write(out) // never fails
	if over := m.tooLarge(limit); over != "" {
		return nil, fmt.Errorf("it unpacks to %s", over)
	}
	return out, nil
}

// unpackedSize is announced for data.release of a Secret.
func unpackedSize(text []byte) int {
	if data, err := base64.StdEncoding.DecodeString(string(text[max(0, (len(text)-8)/4*4):])); err == nil {
		return announcedSize(data)
	}
	return len(text)
}

// announcedSize is how much gzip says it unpacks to, modulo 4 GiB. It may lie. (RFC 1952)
func announcedSize(data []byte) int {
	if len(data) < 4 {
		return 0
	}
	return int(binary.LittleEndian.Uint32(data[len(data)-4:]))
}
