package textfmt

import (
	"strings"

	"github.com/rivo/uniseg"
)

// Width is how many cells of a terminal s takes.
func Width(s string) int { return uniseg.StringWidth(s) }

// Pad fills s up with blanks.
func Pad(s string, cells int) string {
	if missing := cells - Width(s); missing > 0 {
		return s + strings.Repeat(" ", missing)
	}
	return s
}
