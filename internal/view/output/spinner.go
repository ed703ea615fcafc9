package output

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"deployer/internal/view/textfmt"
)

const (
	// spinnerAfter is how long something may take without a word.
	spinnerAfter = 300 * time.Millisecond
	spinnerEvery = 100 * time.Millisecond
	roomForTime  = 16 // cells for the spinner and the time

	megabyte = 1_000_000
)

// A Spinner shows on a terminal that something of unknown length is under way, such as a
// download, and for how long. It disappears at the end. Without a terminal it shows nothing.
type Spinner struct {
	out  io.Writer
	text func() string // what is done, and how far

	mu  sync.Mutex
	bar *progressbar.ProgressBar // nil until it is shown

	stop func() // works once
}

// StartSpinner begins to show what is done, and how much of a transfer. Stop
// ends it.
func StartSpinner(s Streams, what string, transfer func() (moved, announced int64)) *Spinner {
	if !s.ErrTTY || os.Getenv("TERM") == "dumb" || os.Getenv("CI") != "" {
		return &Spinner{stop: func() {}}
	}
	glyphs := textfmt.GlyphsFor(os.Getenv)
	return startSpinner(unfiltered(s.Err), func() string {
		done := transferred(transfer())
		return glyphs.Fit(textfmt.CleanLine(what), s.Width-roomForTime-len(done)) + done
	}, time.After(spinnerAfter), time.Tick(spinnerEvery))
}

// startSpinner begins to show something after a time, and turns at each tick.
func startSpinner(out io.Writer, text func() string, after, tick <-chan time.Time) *Spinner {
	w := &Spinner{out: out, text: text}
	stopped := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { w.run(after, tick, stopped) })
	w.stop = sync.OnceFunc(func() {
		close(stopped)
		running.Wait()
		if w.bar != nil {
			_ = w.bar.Finish()
		}
	})
	return w
}

func (w *Spinner) run(after, tick <-chan time.Time, stopped <-chan struct{}) {
	select {
	case <-stopped:
		return
	case <-after:
	}
	w.mu.Lock()
	w.bar = progressbar.NewOptions(-1,
		progressbar.OptionSetWriter(w.out),
		progressbar.OptionSpinnerType(14),
		progressbar.OptionSetElapsedTime(true),
		progressbar.OptionSetSpinnerChangeInterval(0), // tick is the throttle
		progressbar.OptionUseANSICodes(true),
		progressbar.OptionClearOnFinish(),
	)
	w.mu.Unlock()
	for {
		w.mu.Lock()
		w.bar.Describe(w.text())
		_ = w.bar.Add(1) // what can't be painted isn't seen
		w.mu.Unlock()
		select {
		case <-stopped:
			return
		case <-tick:
		}
	}
}

// transferred is how much has been transferred of how much. It is empty for little, which is
// over before it is read.
func transferred(moved, announced int64) string {
	switch {
	case max(moved, announced) < megabyte/10:
		return ""
	case moved > announced:
		return fmt.Sprintf("  %.1f MB", float64(moved)/megabyte)
	}
	return fmt.Sprintf("  %.1f of %.1f MB", float64(moved)/megabyte, float64(announced)/megabyte)
}

// Through returns a writer to out that clears the spinner before each write.
func (w *Spinner) Through(out io.Writer) io.Writer { return asideWriter{w, out} }

type asideWriter struct {
	w   *Spinner
	out io.Writer
}

func (a asideWriter) Write(p []byte) (int, error) {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	if a.w.bar != nil {
		_ = a.w.bar.Clear()
	}
	return a.out.Write(p)
}

// Stop takes away what is shown. It may be called again.
func (w *Spinner) Stop() { w.stop() }
