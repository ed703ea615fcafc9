package view

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

const (
	// waitingAfter is how long something may take without a word.
	waitingAfter = 300 * time.Millisecond
	waitingEvery = 100 * time.Millisecond
	roomForTime  = 16 // cells for the spinner and the time
)

// Waiting shows on a terminal that something is under way whose length nobody
// knows, such as a download: a spinner, what is done, and for how long. It is
// gone when that has ended. Without a terminal it shows nothing.
type Waiting struct {
	out   io.Writer
	what  string
	after <-chan time.Time // when to begin
	tick  <-chan time.Time // when to turn

	mu  sync.Mutex
	bar *progressbar.ProgressBar // nil until it is shown

	stop, stopped chan struct{} // nil without a terminal
	once          sync.Once
}

// StartWaiting begins to show what is done. Stop ends it.
func StartWaiting(s Streams, what string) *Waiting {
	w := &Waiting{out: s.Err, what: glyphsFor(os.Getenv).fit(line(what), s.Width-roomForTime)}
	if !s.ErrTTY || os.Getenv("TERM") == "dumb" || os.Getenv("CI") != "" {
		return w
	}
	ticker := time.NewTicker(waitingEvery)
	w.after, w.tick = time.After(waitingAfter), ticker.C
	w.stop, w.stopped = make(chan struct{}), make(chan struct{})
	go func() {
		defer ticker.Stop()
		w.run()
	}()
	return w
}

func (w *Waiting) run() {
	defer close(w.stopped)
	select {
	case <-w.stop:
		return
	case <-w.after:
	}
	w.mu.Lock()
	w.bar = progressbar.NewOptions(-1,
		progressbar.OptionSetWriter(w.out),
		progressbar.OptionSetDescription(w.what),
		progressbar.OptionSpinnerType(14),
		progressbar.OptionSetElapsedTime(true),
		progressbar.OptionSetSpinnerChangeInterval(0), // tick is the throttle
		progressbar.OptionUseANSICodes(true),
		progressbar.OptionClearOnFinish(),
	)
	w.mu.Unlock()
	for {
		w.mu.Lock()
		_ = w.bar.Add(1) // what can't be painted isn't seen
		w.mu.Unlock()
		select {
		case <-w.stop:
			return
		case <-w.tick:
		}
	}
}

// Through is a writer to out that doesn't mix with what is shown.
func (w *Waiting) Through(out io.Writer) io.Writer { return aside{w, out} }

type aside struct {
	w   *Waiting
	out io.Writer
}

func (a aside) Write(p []byte) (int, error) {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	if a.w.bar != nil {
		_ = a.w.bar.Clear()
	}
	return a.out.Write(p)
}

// Stop takes away what is shown. It may be called again.
func (w *Waiting) Stop() {
	if w.stop == nil {
		return
	}
	w.once.Do(func() {
		close(w.stop)
		<-w.stopped
		if w.bar != nil {
			_ = w.bar.Finish()
		}
	})
}
