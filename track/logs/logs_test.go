package logs

import (
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
