package kubetest

import (
	"io"
	"net"
	"sync"
	"testing"
)

// A gate passes on connections to another address, as long as it is open.
type gate struct {
	address, to string

	mu       sync.Mutex
	listener net.Listener // nil while it is closed
	passing  []net.Conn
}

// openGate opens a gate to an address, and closes it with the test.
func openGate(t testing.TB, to string) *gate {
	t.Helper()
	g := &gate{address: "127.0.0.1:0", to: to}
	if err := g.open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.close)
	return g
}

// open opens the gate, at the same address as before.
func (g *gate) open() error {
	listener, err := net.Listen("tcp", g.address)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.listener, g.address = listener, listener.Addr().String()
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return // it was closed
			}
			go g.pass(listener, from)
		}
	}()
	return nil
}

// pass carries what both ends say, until one of them or the gate is closed.
func (g *gate) pass(listener net.Listener, from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", g.to)
	if err != nil {
		return // the other side finds its connection closed
	}
	defer to.Close()
	g.mu.Lock()
	open := g.listener == listener
	g.passing = append(g.passing, from, to)
	g.mu.Unlock()
	if !open {
		return
	}
	go func() {
		_, _ = io.Copy(to, from)
		to.Close()
	}()
	_, _ = io.Copy(from, to)
}

// close closes the gate and ends all that passes.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listener != nil {
		g.listener.Close()
	}
	for _, c := range g.passing {
		c.Close()
	}
	g.listener, g.passing = nil, nil
}
