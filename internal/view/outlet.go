package view

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

const (
	// outletRoom is how much may wait for a terminal that isn't read: some
	// thousand lines.
	outletRoom = 512 << 10
	// recordRoom is the same for a program that reads our events.
	recordRoom = 16 << 20
)

// An outlet writes in a goroutine of its own, so that a terminal that is held
// (Ctrl-S) or a reader that is slow doesn't hold up the run. What finds no room
// is left out, and how much it was is said; or its writer waits, when nothing
// may be left out.
type outlet struct {
	to       io.Writer
	room     int
	complete bool // wait for room

	mu     sync.Mutex
	moved  *sync.Cond
	queue  []byte
	busy   bool // a write is under way
	left   int  // lines left out
	err    error
	closed bool
}

func newOutlet(to io.Writer, room int, complete bool) *outlet {
	o := &outlet{to: to, room: room, complete: complete}
	o.moved = sync.NewCond(&o.mu)
	go o.run()
	return o
}

// Write takes text in. Its error is that of an earlier write.
func (o *outlet) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.complete && o.err == nil && len(o.queue) > 0 && len(o.queue)+len(text) > o.room {
		o.moved.Wait()
	}
	if o.err != nil {
		return 0, o.err
	}
	if len(o.queue) > 0 && len(o.queue)+len(text) > o.room {
		o.left += bytes.Count(text, []byte("\n"))
		return len(text), nil
	}
	if o.left > 0 {
		o.queue = fmt.Appendf(o.queue, "(%s left out: nobody read them in time)\n", count(o.left, "line"))
		o.left = 0
	}
	o.queue = append(o.queue, text...)
	o.moved.Broadcast()
	return len(text), nil
}

// finish lets the writer wait for room from now on: what ends a run is told,
// however long that takes.
func (o *outlet) finish() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.complete = true
}

// idle reports whether all that was written has been taken by its reader.
func (o *outlet) idle() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.queue) == 0 && !o.busy
}

func (o *outlet) run() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		for len(o.queue) == 0 && !o.closed {
			o.moved.Wait()
		}
		if len(o.queue) == 0 {
			o.busy = false
			return
		}
		text := o.queue
		o.queue, o.busy = nil, true
		o.mu.Unlock()
		_, err := o.to.Write(text)
		o.mu.Lock()
		o.busy = false
		if o.err == nil {
			o.err = err
		}
		o.moved.Broadcast()
	}
}

// close waits until all has been written. Its error is that of the first write
// that failed.
func (o *outlet) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.moved.Broadcast()
	for (len(o.queue) > 0 || o.busy) && o.err == nil {
		o.moved.Wait()
	}
	return o.err
}
