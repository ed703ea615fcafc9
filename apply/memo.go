package apply

import "sync"

// A memo calls a function once per key and keeps its result. Different keys don't block
// each other. An error isn't kept: the next caller tries again. The zero value is ready
// to use.
type memo[K comparable, V any] struct {
	found sync.Map // of *finding[V] by K
}

type finding[V any] struct {
	mu    sync.Mutex
	known bool
	value V
}

func (m *memo[K, V]) get(key K, ask func() (V, error)) (V, error) {
	known, _ := m.found.LoadOrStore(key, &finding[V]{})
	f := known.(*finding[V])
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known {
		return f.value, nil
	}
	value, err := ask()
	if err == nil {
		f.value, f.known = value, true
	}
	return value, err
}

// forget makes the memo call its function again.
func (m *memo[K, V]) forget() { m.found.Clear() }
