package track

import (
	"context"
	"sync"
)

const maxDrain = 1000 // messages taken before statuses are computed

// tasks are the goroutines of a session. They send functions, which the session's own
// goroutine calls in turn, so that only one goroutine touches the session's data.
type tasks struct {
	ctx   context.Context // ends with the session
	group sync.WaitGroup
	inbox chan func()
}

// begin lets tasks run until ctx ends or end is called. end waits for all of them; what they
// still send is dropped.
func (t *tasks) begin(ctx context.Context) (end func()) {
	t.inbox = make(chan func(), 256)
	var stop context.CancelFunc
	t.ctx, stop = context.WithCancel(ctx)
	return func() {
		stop()
		t.group.Wait()
	}
}

// send has the session's goroutine call f; it returns false when the session has ended.
func (t *tasks) send(f func()) bool {
	select {
	case t.inbox <- f:
		return true
	case <-t.ctx.Done():
		return false
	}
}

// drain calls what was sent so far.
func (t *tasks) drain() {
	for range maxDrain {
		select {
		case f := <-t.inbox:
			f()
		default:
			return
		}
	}
}
