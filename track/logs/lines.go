// Package logs reads container logs line by line. Lines are cut at a fixed length.
package logs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

const (
	maxLine   = 8 << 10  // bytes of a line that are kept
	readChunk = 32 << 10 // bytes read at a time
)

// A Line is one line of a log.
type Line struct {
	Time time.Time // by the node's clock; zero when it has none
	Text string
}

// Read calls each for every line of r until it ends. A line is cut at maxLine. With
// stamped, each line begins with its time.
func Read(r io.Reader, stamped bool, each func(Line)) error {
	in := bufio.NewReaderSize(r, readChunk)
	var line []byte
	lost, begun := 0, false
	for {
		chunk, err := in.ReadSlice('\n')
		begun = begun || len(chunk) > 0
		room := max(0, maxLine-len(line))
		line = append(line, chunk[:min(room, len(chunk))]...)
		lost += max(0, len(chunk)-room)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case begun && (err == nil || errors.Is(err, io.EOF)):
			each(parse(line, lost, stamped))
			line, lost, begun = line[:0], 0, false
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func parse(raw []byte, lost int, stamped bool) Line {
	text := strings.TrimRight(strings.ToValidUTF8(string(raw), "\uFFFD"), "\r\n")
	var at time.Time
	if stamped {
		stamp, rest, _ := strings.Cut(text, " ")
		if t, err := time.Parse(time.RFC3339Nano, stamp); err == nil {
			at, text = t, rest
		}
	}
	if lost > 1 { // the line end doesn't count
		text += fmt.Sprintf(" …(+%d bytes)", lost)
	}
	return Line{Time: at, Text: text}
}
