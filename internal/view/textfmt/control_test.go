package textfmt

import (
	"strings"
	"testing"

	"deployer/internal/view/viewtest"
)

func TestLine(t *testing.T) {
	for in, want := range map[string]string{
		"plain text, ünïcode ✓":      "plain text, ünïcode ✓",
		"a\x1b[31mred\x1b[0m b":      "ared b",
		"\x1b]0;title\x07after":      "after",
		"\x1b]8;;http://x\x1b\\link": "link",
		"a\x1b]unfinished":           "a",
		"\x1b]unfinished\nnext":      "next",
		"\u009b31mC1":                "C1",
		"two\r\nlines\tand tab":      "two  lines and tab",
		"bell\x07 null\x00 back\x08": "bell null back",
		"turn\u202eed":               "turned",
		"\x1bcreset \x1b(Bset":       "reset Bset",
		"broken \xff\xfe utf-8":      "broken \ufffd\ufffd utf-8",
	} {
		if got := CleanLine(in); got != want {
			t.Errorf("line(%q) = %q, want %q", in, got, want)
		}
	}
}

// FuzzLine holds that nothing that a terminal obeys is left of any text.
func FuzzLine(f *testing.F) {
	f.Add(viewtest.Hostile)
	f.Add("\x1b[\x1b[31m")
	f.Add("\x1b\x1b]x\x07[2J")
	f.Fuzz(func(t *testing.T, s string) {
		if got := CleanLine(s); strings.ContainsFunc(got, IsControl) {
			t.Errorf("line(%q) = %q", s, got)
		}
		if got := strings.ReplaceAll(CleanText(s), "\n", ""); strings.ContainsFunc(got, IsControl) {
			t.Errorf("block(%q) = %q", s, got)
		}
	})
}
