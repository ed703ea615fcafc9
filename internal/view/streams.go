// Package view writes everything that people and programs read: plans, events,
// tables and errors, as text, progress or JSON. Nothing else writes.
package view

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Streams are where a program reads and writes.
type Streams struct {
	In             io.Reader
	Out, Err       io.Writer
	OutTTY, ErrTTY bool
	Width, Height  int // of the terminal in cells; 80 by 24 when unknown

	console *os.File // what Err writes to, when that is a file
	sinks   []*sink  // of Out and Err
}

// NewStreams looks at what the streams are connected to.
func NewStreams(in io.Reader, out, errOut io.Writer) Streams {
	s := Streams{In: in, Out: out, Err: errOut, Width: 80, Height: 24}
	s.OutTTY, s.ErrTTY = isTerminal(out), isTerminal(errOut)
	for _, w := range []io.Writer{errOut, out} {
		if f, ok := w.(*os.File); ok {
			if width, height, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
				s.Width, s.Height = width, height
				break
			}
		}
	}
	s.console, _ = errOut.(*os.File)
	s.sinks = []*sink{{to: out, name: "standard output"}, {to: errOut, name: "standard error"}}
	s.Out, s.Err = s.sinks[0], s.sinks[1]
	return s
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
