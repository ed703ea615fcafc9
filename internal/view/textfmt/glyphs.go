package textfmt

import (
	"strings"

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
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToUpper(env(name)); v != "" {
			if strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8") {
				return UnicodeGlyphs
			}
			return ASCIIGlyphs
		}
	}
	return UnicodeGlyphs
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
	var b strings.Builder
	state, used := -1, 0
	for rest := s; rest != ""; {
		var cluster string
		var w int
		cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if used+w > room {
			break
		}
		used += w
		b.WriteString(cluster)
	}
	return b.String() + g.More
}
