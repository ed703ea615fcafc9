package logs

import "sync"

// A Queue passes values from readers that must not wait to one taker. When it
// is full, values are dropped and counted.
type Queue[T any] struct {
	mu      sync.Mutex
	values  []T
	dropped int
	limit   int
	ready   chan struct{}
}

// NewQueue returns a queue of at most limit values.
func NewQueue[T any](limit int) *Queue[T] {
	return &Queue[T]{limit: limit, ready: make(chan struct{}, 1)}
}

// Put adds a value. It never waits.
func (q *Queue[T]) Put(v T) {
	q.mu.Lock()
	if len(q.values) < q.limit {
		q.values = append(q.values, v)
	} else {
		q.dropped++
	}
	q.mu.Unlock()
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// Ready has a value after something was put.
func (q *Queue[T]) Ready() <-chan struct{} { return q.ready }

// Take empties the queue. dropped is how many values came after those and were
// lost.
func (q *Queue[T]) Take() (values []T, dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	values, dropped = q.values, q.dropped
	q.values, q.dropped = nil, 0
	return values, dropped
}
