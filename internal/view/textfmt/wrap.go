package textfmt

import (
	"strings"

	"github.com/rivo/uniseg"
)

// narrowest is the narrowest terminal that the lines of a text are made to fit.
const narrowest = 40

// Wrap breaks lines longer than a width, between words where there are any.
// Continuation lines are indented.
func Wrap(text string, cells int) string {
	cells = max(cells, narrowest)
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		plain := WithoutColours(l)
		lines[i] = WrapLine(l, cells, len(plain)-len(strings.TrimLeft(plain, " "))+4)
	}
	return strings.Join(lines, "\n")
}

// WrapLine breaks one line if it is longer than a width, between words where there are any.
// What follows is indented by as many cells as are given, but by no more than half of the
// width. Colours take no room.
func WrapLine(text string, cells, hanging int) string {
	return wrapLine(text, max(cells, narrowest), hanging)
}

// WrapWords returns words as lines of a width. Only a word that is longer is broken.
func WrapWords(text string, cells int) []string {
	return strings.Split(wrapLine(strings.Join(strings.Fields(text), " "), cells, 0), "\n")
}

func wrapLine(text string, cells, hanging int) string {
	if Width(WithoutColours(text)) <= cells {
		return text
	}
	indent := strings.Repeat(" ", min(hanging, cells/2))
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
		if n := escapeLength(rest); n > 0 {
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

// WithoutColours takes escape sequences, such as those for colours, out of a text.
func WithoutColours(text string) string {
	return withoutControls(text, func(r rune) rune { return r })
}

// Width is how many cells of a terminal s takes.
func Width(s string) int { return uniseg.StringWidth(s) }

// Pad fills s up with blanks.
func Pad(s string, cells int) string {
	if missing := cells - Width(s); missing > 0 {
		return s + strings.Repeat(" ", missing)
	}
	return s
}
