package output

import (
	"os"
	"strings"

	"github.com/fatih/color"
)

// Colour says when text is coloured.
type Colour string

// The choices of --color.
const (
	ColourAuto   Colour = "auto"
	ColourAlways Colour = "always"
	ColourNever  Colour = "never"
)

// A Palette paints words for one stream. Colour repeats what the words say;
// it never says anything by itself.
type Palette struct {
	Good, Bad, Warn, Faint, Bold *color.Color
}

// newPalette makes the palette of a stream whose filter knows our colours by a
// mark; 0 when it has none. NO_COLOR (https://no-color.org) and TERM=dumb turn
// colour off unless it was asked for.
func newPalette(when Colour, tty bool, mark int) Palette {
	on := when == ColourAlways
	if when == ColourAuto || when == "" {
		on = tty && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	paint := func(attribute color.Attribute) *color.Color {
		c := color.New(attribute)
		if mark != 0 {
			c = color.New(color.Attribute(mark), attribute)
		}
		// The library decides once, from standard output; we decide by stream.
		if on {
			c.EnableColor()
		} else {
			c.DisableColor()
		}
		return c
	}
	return Palette{
		Good:  paint(color.FgGreen),
		Bad:   paint(color.FgRed),
		Warn:  paint(color.FgYellow),
		Faint: paint(color.Faint),
		Bold:  paint(color.Bold),
	}
}

// Status paints the status of a release, the state of an object or the severity of a message. The zero palette leaves it.
func (p Palette) Status(word string) string {
	if p == (Palette{}) {
		return word
	}
	first, _, _ := strings.Cut(word, " ")
	switch first {
	case "deployed", "ready", "Succeeded":
		return p.Good.Sprint(word)
	case "failed", "unreadable", "gone", "Failed", "[ERROR]":
		return p.Bad.Sprint(word)
	case "superseded", "uninstalled", "[INFO]":
		return p.Faint.Sprint(word)
	case "pending-install", "pending-upgrade", "pending-rollback", "uninstalling", "unknown", "progressing", "Running", "[WARNING]":
		return p.Warn.Sprint(word)
	}
	return word
}
