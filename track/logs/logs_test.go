package logs

import (
	"fmt"
	"strings"
	"testing"
)

func TestReadCutsLongLines(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	var got []Line
	in := "2026-01-01T12:00:00.5Z short\n2026-01-01T12:00:01Z " + long + "\nno stamp\r\n\nlast"
	if err := Read(strings.NewReader(in), true, func(l Line) { got = append(got, l) }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 5 {
		t.Fatalf("%d lines, want 5", len(got))
	}
	if got[0].Text != "short" || got[0].Time.IsZero() {
		t.Errorf("first line = %+v", got[0])
	}
	if n := len(got[1].Text); n > maxLine+40 || !strings.Contains(got[1].Text, " bytes)") {
		t.Errorf("long line has %d bytes and ends with %q", n, got[1].Text[n-20:])
	}
	if got[2].Text != "no stamp" || got[3].Text != "" || got[4].Text != "last" {
		t.Errorf("lines = %q", got[2:])
	}
}

// TestReadCountsWhatItCut: a line end is no part of the line, whether or not it came
// within the bytes that are kept.
func TestReadCountsWhatItCut(t *testing.T) {
	for _, c := range []struct {
		length int
		end    string
		want   string // the note at the end
	}{
		{maxLine, "", ""},
		{maxLine, "\n", ""},
		{maxLine, "\r\n", ""},
		{maxLine - 1, "\r\n", ""},
		{maxLine + 1, "", " …(+1 bytes)"},
		{maxLine + 1, "\n", " …(+1 bytes)"},
		{maxLine + 1, "\r\n", " …(+1 bytes)"},
		{maxLine + 2, "\n", " …(+2 bytes)"},
		{readChunk, "\r\n", fmt.Sprintf(" …(+%d bytes)", readChunk-maxLine)},
		{3 * readChunk, "\r\n", fmt.Sprintf(" …(+%d bytes)", 3*readChunk-maxLine)},
		{3*readChunk - 1, "\r\n", fmt.Sprintf(" …(+%d bytes)", 3*readChunk-1-maxLine)},
	} {
		var got []string
		in := strings.Repeat("x", c.length) + c.end
		if err := Read(strings.NewReader(in), false, func(l Line) { got = append(got, l.Text) }); err != nil {
			t.Fatal(err)
		}
		want := strings.Repeat("x", min(c.length, maxLine)) + c.want
		if len(got) != 1 || got[0] != want {
			t.Errorf("a line of %d bytes and %q: %d lines, the first ends with %q, want %q", c.length, c.end, len(got), got[0][max(0, len(got[0])-30):], want[max(0, len(want)-30):])
		}
	}
}
