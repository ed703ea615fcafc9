package output

import (
	"strings"
	"testing"
	"time"

	"deployer/internal/lazyregexp"
)

// erased is what was painted on a line before the last time it was erased.
var erased = lazyregexp.New(`(?m)^.*\x1b\[2K\r`)

// What is waited for is shown on a terminal after a while, makes room for
// lines, and leaves nothing behind.
func TestWaiting(t *testing.T) {
	s := &strings.Builder{}
	var moved int64
	after, tick := make(chan time.Time), make(chan time.Time)
	w := startSpinner(s, func() string { return "fetching local/web" + transferred(moved, 2_000_000) }, after, tick)
	text := func() string {
		w.mu.Lock()
		defer w.mu.Unlock()
		return erased().ReplaceAllString(s.String(), "")
	}
	if got := text(); strings.TrimSpace(got) != "" {
		t.Errorf("shown at once: %q", got)
	}
	after <- time.Time{}
	tick <- time.Time{} // is taken after the first picture
	if got := text(); !strings.Contains(got, "fetching local/web") {
		t.Errorf("not shown: %q", got)
	}
	w.mu.Lock()
	moved = 1_450_000
	w.mu.Unlock()
	tick <- time.Time{}
	tick <- time.Time{}
	if got := text(); !strings.Contains(got, "fetching local/web  1.4 of 2.0 MB") {
		t.Errorf("how far it is isn't shown: %q", got)
	}
	if _, err := w.Through(s).Write([]byte("Pulled: local/web\n")); err != nil {
		t.Fatal(err)
	}
	tick <- time.Time{}
	tick <- time.Time{}
	if got := text(); !strings.HasPrefix(got, "Pulled: local/web\n") || !strings.Contains(got, "fetching") {
		t.Errorf("a line beside it: %q", got)
	}
	w.Stop()
	w.Stop()
	if got := strings.TrimSpace(text()); got != "Pulled: local/web" {
		t.Errorf("left behind: %q", got)
	}
}

func TestWaitingWithoutTerminal(t *testing.T) {
	var out strings.Builder
	w := StartSpinner(Streams{Err: &out, Width: 80}, "fetching local/web", func() (int64, int64) { return 0, 0 })
	w.Stop()
	if w.out != nil || out.Len() > 0 {
		t.Errorf("shown without a terminal: %q", out.String())
	}
}

func TestAmount(t *testing.T) {
	for _, c := range []struct {
		moved, announced int64
		want             string
	}{
		{0, 0, ""},
		{50_000, 60_000, ""},
		{0, 12_340_000, "  0.0 of 12.3 MB"},
		{4_560_000, 12_340_000, "  4.6 of 12.3 MB"},
		{4_560_000, 2_000, "  4.6 MB"}, // the length of an answer is unknown
	} {
		if got := transferred(c.moved, c.announced); got != c.want {
			t.Errorf("amount(%d, %d) = %q, want %q", c.moved, c.announced, got, c.want)
		}
	}
}
