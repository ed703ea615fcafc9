package apply

import "sync"

// A memo asks each question once, however many objects have it, and lets those
// with other questions go on meanwhile. An error is no answer: the next one asks
// again. The zero value knows nothing.
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
