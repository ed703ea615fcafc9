// Package output is where the program writes: standard output and standard error,
// filtered and coloured, and what all commands write there: JSON and YAML, tables,
// errors, warnings, a spinner.
package output

import (
	"io"
	"math/rand/v2"
	"os"

	"golang.org/x/term"

	"deployer/internal/program"
	"deployer/internal/view/textfmt"
)

// Streams are where a program reads and writes. What is written to Out and Err
// is text for people: see filter. Data is for everything else.
type Streams struct {
	In             io.Reader
	Out, Err       io.Writer
	OutTTY, ErrTTY bool
	Width, Height  int // of the terminal in cells; 80 by 24 when unknown

	console *os.File  // what Err writes to, when that is a file
	sinks   []*stream // of Out and Err

	nonce int           // of what is passed on as it is; 0 without a filter
	call  *program.Call // how the program was called
}

// NewStreams looks at what the streams are connected to, and filters what is
// written to them. The name is the one that the program was called by.
func NewStreams(in io.Reader, out, errOut io.Writer, name string) Streams {
	s := Streams{In: in, Out: out, Err: errOut, Width: 80, Height: 24}
	s.OutTTY, s.ErrTTY = IsTerminal(out), IsTerminal(errOut)
	for _, w := range []io.Writer{errOut, out} {
		if f, ok := w.(*os.File); ok {
			if width, height, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
				s.Width, s.Height = width, height
				break
			}
		}
	}
	s.console, _ = errOut.(*os.File)
	s.sinks = []*stream{{to: out, name: "standard output"}, {to: errOut, name: "standard error"}}
	s.Out, s.Err = s.sinks[0], s.sinks[1]
	return s.Filtered(name)
}

// Filtered puts filters in front of the streams.
func (s Streams) Filtered(name string) Streams {
	s.call, s.nonce = program.CalledAs(name), 1_000_000+rand.IntN(1_000_000_000)
	s.Out = &filter{to: s.Out, call: s.call, nonce: s.nonce}
	s.Err = &filter{to: s.Err, call: s.call, nonce: s.nonce}
	return s
}

// Data is standard output without a filter, for programs.
func (s Streams) Data() io.Writer { return unfiltered(s.Out) }

func unfiltered(w io.Writer) io.Writer {
	if f, ok := w.(*filter); ok {
		return f.to
	}
	return w
}

// MarkTrusted marks a text so that the filter passes it on unchanged. Text from elsewhere in
// it must be cleaned before.
func (s Streams) MarkTrusted(text string) string {
	if s.nonce == 0 || text == "" {
		return text
	}
	f := &filter{nonce: s.nonce}
	return f.beginMark() + text + f.endMark()
}

// OutPalette is the palette of standard output.
func (s Streams) OutPalette(when Colour) Palette { return newPalette(when, s.OutTTY, s.nonce) }

// ErrPalette is the palette of standard error.
func (s Streams) ErrPalette(when Colour) Palette { return newPalette(when, s.ErrTTY, s.nonce) }

// IsTerminal reports whether a reader or writer is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// WriteText writes text for people in the way their terminal can show it:
// without a UTF-8 locale in ASCII, and on a terminal in lines that fit. What goes
// into a file or a pipe keeps its lines, as programs look for them.
func (s Streams) WriteText(text string, env func(string) string) error {
	if env == nil {
		env = os.Getenv
	}
	if textfmt.GlyphsFor(env) == textfmt.ASCIIGlyphs {
		text = textfmt.ASCII(s.WithCall(text))
	}
	if s.OutTTY {
		text = textfmt.Wrap(text, s.Width)
	}
	_, err := io.WriteString(s.Out, text)
	return err
}

// Size returns the present size of the terminal in cells.
func (s Streams) Size() (width, height int) {
	if s.console != nil {
		if w, h, err := term.GetSize(int(s.console.Fd())); err == nil && w > 0 && h > 0 {
			return w, h
		}
	}
	return max(s.Width, 20), max(s.Height, 4)
}

// WithCall is a text of ours, such as a command line, with the name that the program was called by, and the flags that
// chose the cluster.
func (s Streams) WithCall(text string) string { return s.call.Insert(text) }

// ChooseCluster sets these flags, by their names: those of ours, and of kubectl for the same. Flags without a value are
// left out.
func (s Streams) ChooseCluster(flags []ClusterFlag) {
	own, kubectl := "", ""
	for _, f := range flags {
		if f.Value != "" {
			own += " --" + f.Own + " " + textfmt.ShellWord(f.Value)
			kubectl += " --" + f.Kubectl + " " + textfmt.ShellWord(f.Value)
		}
	}
	s.call.ChooseCluster(own, kubectl)
}

// A ClusterFlag is a flag that chooses the cluster, as we and as kubectl call it.
type ClusterFlag struct{ Own, Kubectl, Value string }
