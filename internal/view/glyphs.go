package view

import (
	"strings"

	"github.com/rivo/uniseg"
)

// glyphs are the signs that go with words. None of them says anything alone.
type glyphs struct {
	good, bad, warn, busy, title, dot, arrow, branch, more string
	full, head, empty                                      string // of the bar
}

func unicodeGlyphs() glyphs {
	return glyphs{
		good: "✓", bad: "✗", warn: "!", busy: "…", title: "▸", dot: "·", arrow: "→", branch: "└", more: "…",
		full: "━", head: "╸", empty: "┈",
	}
}

func asciiGlyphs() glyphs {
	return glyphs{
		good: "+", bad: "x", warn: "!", busy: ".", title: ">", dot: "-", arrow: "->", branch: "`-", more: "...",
		full: "=", head: ">", empty: ".",
	}
}

// glyphsFor picks signs that the user's locale can show: the first of LC_ALL,
// LC_CTYPE and LANG that is set decides, as in POSIX. With none set, which is
// how containers of CI run, UTF-8 is assumed.
func glyphsFor(env func(string) string) glyphs {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToUpper(env(name)); v != "" {
			if strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8") {
				return unicodeGlyphs()
			}
			return asciiGlyphs()
		}
	}
	return unicodeGlyphs()
}

// width is how many cells of a terminal s takes.
func width(s string) int { return uniseg.StringWidth(s) }

// fit cuts s to at most cells cells, and says by more that it did.
func (g glyphs) fit(s string, cells int) string {
	if width(s) <= cells {
		return s
	}
	room := cells - width(g.more)
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
	return b.String() + g.more
}

// pad fills s up with blanks.
func pad(s string, cells int) string {
	if missing := cells - width(s); missing > 0 {
		return s + strings.Repeat(" ", missing)
	}
	return s
}
