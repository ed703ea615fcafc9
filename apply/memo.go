package apply

import "sync"

// A memo calls a function once per key and keeps its result. Different keys don't block
// each other. An error isn't kept: the next caller tries again. The zero value is ready
// to use.
type memo[K comparable, V any] struct {
	mu    sync.Mutex
	found map[K]*finding[V]
}

type finding[V any] struct {
	mu    sync.Mutex
	known bool
	value V
}

func (m *memo[K, V]) get(key K, ask func() (V, error)) (V, error) {
	m.mu.Lock()
	if m.found == nil {
		m.found = map[K]*finding[V]{}
	}
	f := m.found[key]
	if f == nil {
		f = &finding[V]{}
		m.found[key] = f
	}
	m.mu.Unlock()
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
