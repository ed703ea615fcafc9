package textfmt

import (
	"cmp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// Glyphs are the signs that go with words. None of them says anything alone.
type Glyphs struct {
	Good, Bad, Warn, Busy, Title, Dot, Arrow, Branch, More string
	Full, Head, Empty                                      string // of the bar
}

var (
	UnicodeGlyphs = Glyphs{
		Good: "✓", Bad: "✗", Warn: "!", Busy: "…", Title: "▸", Dot: "·", Arrow: "→", Branch: "└", More: "…",
		Full: "━", Head: "╸", Empty: "┈",
	}
	ASCIIGlyphs = Glyphs{
		Good: "+", Bad: "x", Warn: "!", Busy: ".", Title: ">", Dot: "-", Arrow: "->", Branch: "`-", More: "...",
		Full: "=", Head: ">", Empty: ".",
	}
)

// GlyphsFor picks signs that the user's locale can show: the first of LC_ALL,
// LC_CTYPE and LANG that is set decides, as in POSIX. With none set, which is
// how containers of CI run, UTF-8 is assumed.
func GlyphsFor(env func(string) string) Glyphs {
	locale := strings.ToUpper(cmp.Or(env("LC_ALL"), env("LC_CTYPE"), env("LANG"), "UTF-8"))
	if strings.Contains(locale, "UTF-8") || strings.Contains(locale, "UTF8") {
		return UnicodeGlyphs
	}
	return ASCIIGlyphs
}

// Fit cuts s to at most cells cells and then ends it with g.More.
func (g Glyphs) Fit(s string, cells int) string {
	if Width(s) <= cells {
		return s
	}
	room := cells - Width(g.More)
	if room <= 0 {
		return ""
	}
	// uniseg.Graphemes would bring tables for words and sentences into the program, 300 KB.
	end := 0
	for rest, state := s, -1; rest != ""; {
		var cluster string
		var width int
		cluster, rest, width, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if room -= width; room < 0 {
			break
		}
		end += len(cluster)
	}
	return s[:end] + g.More
}

// ASCII replaces non-ASCII characters by escapes.
func ASCII(text string) string {
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
