// Package logs reads container logs line by line. Lines are cut at a fixed length.
package logs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

const (
	maxLine   = 8 << 10  // bytes of a line that are kept
	readChunk = 32 << 10 // bytes read at a time
	lineEnd   = "\r\n"
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
	size, end := 0, 0 // bytes of the line so far, and how many of them may be its end
	for {
		chunk, err := in.ReadSlice('\n')
		line = append(line, chunk[:min(maxLine-len(line), len(chunk))]...)
		size += len(chunk)
		text := bytes.TrimRight(chunk, lineEnd)
		if len(text) > 0 {
			end = 0
		}
		end += len(chunk) - len(text)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case size > 0 && (err == nil || errors.Is(err, io.EOF)):
			each(parse(line, size-end-maxLine, stamped))
			line, size, end = line[:0], 0, 0
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
	text := strings.TrimRight(strings.ToValidUTF8(string(raw), "\uFFFD"), lineEnd)
	var at time.Time
	if stamped {
		stamp, rest, _ := strings.Cut(text, " ")
		if t, err := time.Parse(time.RFC3339Nano, stamp); err == nil {
			at, text = t, rest
		}
	}
	if lost > 0 {
		text += fmt.Sprintf(" …(+%d bytes)", lost)
	}
	return Line{Time: at, Text: text}
}
