package output

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"deployer/internal/view/textfmt"
)

const (
	// MessageLimit is how many bytes are queued for a terminal that isn't read: some thousand
	// lines.
	MessageLimit = 512 << 10
	// EventLimit is the same for a program that reads our events.
	EventLimit = 16 << 20
)

// An AsyncWriter writes in its own goroutine. A paused terminal (Ctrl-S) or a slow reader
// therefore doesn't delay the run. When the queue is full, a lossless writer blocks;
// another one drops lines and writes how many it dropped.
type AsyncWriter struct {
	to       io.Writer
	limit    int
	lossless bool // writers wait for room; else lines are dropped

	mu      sync.Mutex
	changed *sync.Cond
	queue   []byte
	writing bool // a write is under way
	dropped int  // lines left out
	err     error
	closed  bool
}

// NewAsyncWriter returns a writer that queues up to limit bytes for another one. Close ends it.
func NewAsyncWriter(to io.Writer, limit int, lossless bool) *AsyncWriter {
	o := &AsyncWriter{to: to, limit: limit, lossless: lossless}
	o.changed = sync.NewCond(&o.mu)
	go o.run()
	return o
}

// Write takes text in. Its error is that of an earlier write.
func (o *AsyncWriter) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.lossless && o.err == nil && len(o.queue) > 0 && len(o.queue)+len(text) > o.limit {
		o.changed.Wait()
	}
	if o.err != nil {
		return 0, o.err
	}
	if len(o.queue) > 0 && len(o.queue)+len(text) > o.limit {
		o.dropped += bytes.Count(text, []byte("\n"))
		return len(text), nil
	}
	if o.dropped > 0 {
		o.queue = fmt.Appendf(o.queue, "(%s left out: the reader was too slow)\n", textfmt.Count(o.dropped, "line"))
		o.dropped = 0
	}
	o.queue = append(o.queue, text...)
	o.changed.Broadcast()
	return len(text), nil
}

// WaitForRoom makes the writer lossless from now on, so that the end of a run is always
// written.
func (o *AsyncWriter) WaitForRoom() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lossless = true
}

// Flush waits until all has been written.
func (o *AsyncWriter) Flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for (len(o.queue) > 0 || o.writing) && o.err == nil {
		o.changed.Wait()
	}
}

// IsIdle reports whether everything has been written.
func (o *AsyncWriter) IsIdle() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.queue) == 0 && !o.writing
}

func (o *AsyncWriter) run() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		for len(o.queue) == 0 && !o.closed {
			o.changed.Wait()
		}
		if len(o.queue) == 0 {
			return
		}
		text := o.queue
		o.queue, o.writing = nil, true
		o.mu.Unlock()
		_, err := o.to.Write(text)
		o.mu.Lock()
		o.writing = false
		if o.err == nil {
			o.err = err
		}
		o.changed.Broadcast()
	}
}

// Close waits until all has been written. Its error is that of the first write
// that failed.
func (o *AsyncWriter) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.changed.Broadcast()
	for (len(o.queue) > 0 || o.writing) && o.err == nil {
		o.changed.Wait()
	}
	return o.err
}
