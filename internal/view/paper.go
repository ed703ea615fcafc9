package view

import (
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"deployer/internal/program"
)

// writePeople writes text for people in the way their terminal can show it:
// without a UTF-8 locale in ASCII, and on a terminal in lines that fit. What goes
// into a file or a pipe keeps its lines, as programs look for them.
func (s Streams) writePeople(text string, env func(string) string) error {
	if env == nil {
		env = os.Getenv
	}
	if glyphsFor(env) == asciiGlyphs() {
		text = ascii(program.In(text, s.program))
	}
	if s.OutTTY {
		text = folded(text, s.Width)
	}
	_, err := io.WriteString(s.Out, text)
	return err
}

// ascii writes all other letters by their numbers.
func ascii(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}

// leastWidth is the narrowest terminal that lines are made to fit.
const leastWidth = 40

// folded breaks lines longer than a width, between words where there are any.
// What goes on is further to the right than where it began.
func folded(text string, cells int) string {
	cells = max(cells, leastWidth)
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if width(colourless(l)) > cells {
			lines[i] = fold(l, cells)
		}
	}
	return strings.Join(lines, "\n")
}

// fold breaks one line. Colours take no room.
func fold(text string, cells int) string {
	plain := colourless(text)
	indent := strings.Repeat(" ", min(len(plain)-len(strings.TrimLeft(plain, " "))+4, cells/2))
	var out, word strings.Builder
	at, gap, long := 0, 0, 0 // cells of the line, of the blanks behind it, and of the word that may have to go to the next
	flush := func() {
		if at > len(indent) && at+gap+long > cells {
			out.WriteString("\n" + indent)
			at, gap = len(indent), 0
		}
		out.WriteString(strings.Repeat(" ", gap) + word.String())
		at, gap, long = at+gap+long, 0, 0
		word.Reset()
	}
	state := -1
	for rest := text; rest != ""; {
		if n := escape(rest); n > 0 {
			word.WriteString(rest[:n])
			rest, state = rest[n:], -1
			continue
		}
		var cluster string
		var w int
		cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		switch {
		case cluster == " ":
			if word.Len() > 0 {
				flush()
			}
			gap++
			continue
		case long+w > cells-len(indent): // a word that fits on no line
			flush()
		}
		word.WriteString(cluster)
		long += w
	}
	if word.Len() > 0 {
		flush()
	}
	return out.String()
}

func colourless(text string) string {
	return cleaned(text, func(r rune) rune { return r })
}
