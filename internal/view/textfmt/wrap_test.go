package textfmt

import (
	"strings"
	"testing"
)

func TestWrap(t *testing.T) {
	for in, want := range map[string]string{
		"":                                   "",
		"short":                              "short",
		"  - " + strings.Repeat("word ", 10): "  - word word word word word word word\n      word word word",
		strings.Repeat("x", 45):              strings.Repeat("x", 36) + "\n    " + strings.Repeat("x", 9),
		"   " + strings.Repeat("漢", 20) + " end": "   " + strings.Repeat("漢", 16) + "\n       " + strings.Repeat("漢", 4) + " end",
	} {
		if got := Wrap(in, 40); got != want {
			t.Errorf("Wrap(%q) =\n%s\nwant\n%s", in, got, want)
		}
	}
}
