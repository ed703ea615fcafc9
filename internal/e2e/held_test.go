package e2e

import (
	"os/exec"
	"strings"
	"time"
)

// A held run waits at one of its calls to the API server until it may go on.
type held struct {
	*world
	cmd    *exec.Cmd
	done   func(error) result
	proxy  *proxy
	goOn   chan struct{}
	ended  chan error
	there  chan struct{}
	passed bool
}

// hold runs deployer through a proxy of its own until it comes to a call, which
// is held before it is sent. What runs beside it, such as the heartbeat of its
// Lease, goes on.
func (w *world) hold(at func(int, call) bool, args ...string) *held {
	w.Helper()
	own := *w
	h := &held{world: &own, proxy: own.proxied(), goOn: make(chan struct{}), ended: make(chan error, 1), there: make(chan struct{})}
	h.proxy.arm(&fate{at: at, when: before, do: func() {
		close(h.there)
		<-h.goOn
	}})
	h.cmd, h.done = own.command(deployerBinary, args...)
	if err := h.cmd.Start(); err != nil {
		w.Fatalf("starting deployer: %v", err)
	}
	go func() { h.ended <- h.cmd.Wait() }()
	w.Cleanup(h.pass)
	return h
}

// arrived waits until the run is held; false means that it ended before.
func (h *held) arrived() bool {
	h.Helper()
	select {
	case <-h.there:
		return true
	case err := <-h.ended:
		h.ended <- err
		return false
	case <-time.After(commandTimeout):
		h.Fatalf("it never came to where it is held, and didn't end")
		return false
	}
}

// must waits until the run is held.
func (h *held) must() *held {
	h.Helper()
	if !h.arrived() {
		h.Fatalf("it ended before it came to where it is held:\n%s", h.rest())
	}
	return h
}

// pass lets the run go on.
func (h *held) pass() {
	if !h.passed {
		h.passed = true
		close(h.goOn)
	}
}

// rest lets the run go on and waits for its end.
func (h *held) rest() result {
	h.Helper()
	h.pass()
	return h.done(<-h.ended)
}

// queues is the second look at a Lease: that of somebody who waits for it.
func queues() func(int, call) bool {
	looks := 0
	return func(_ int, c call) bool {
		if c.method == "GET" && strings.Contains(c.path, "/leases/deployer-") {
			looks++
		}
		return looks == 2
	}
}
