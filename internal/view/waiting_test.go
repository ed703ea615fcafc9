package view

import (
	"strings"
	"testing"
	"time"
)

// What is waited for is shown on a terminal after a while, makes room for
// lines, and leaves nothing behind.
func TestWaiting(t *testing.T) {
	s := newScreen(t, 60, 10)
	after, tick := make(chan time.Time), make(chan time.Time)
	w := &Waiting{out: s, what: "fetching local/web", after: after, tick: tick, stop: make(chan struct{}), stopped: make(chan struct{})}
	go w.run()
	text := func() string {
		w.mu.Lock()
		defer w.mu.Unlock()
		return s.String()
	}
	if got := text(); strings.TrimSpace(got) != "" {
		t.Errorf("shown at once: %q", got)
	}
	after <- time.Time{}
	tick <- time.Time{} // is taken after the first picture
	if got := text(); !strings.Contains(got, "fetching local/web") {
		t.Errorf("not shown: %q", got)
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
	w := StartWaiting(Streams{Err: &out, Width: 80}, "fetching local/web")
	w.Stop()
	if w.stop != nil || out.Len() > 0 {
		t.Errorf("shown without a terminal: %q", out.String())
	}
}
