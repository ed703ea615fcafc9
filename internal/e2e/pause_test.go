package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestPausedHolderChangesNothing stops a run (SIGSTOP) at its changes, one after
// the other, until another run has taken its Lease. When it goes on (SIGCONT) it
// changes nothing any more, not even what it was about to send, and says why.
func TestPausedHolderChangesNothing(t *testing.T) {
	t.Parallel()
	first, second := writeTwenty(t, 1), writeTwenty(t, 2)
	for name, at := range map[string]func(int, call) bool{
		"at its record": writes("POST", "/secrets"),
		"at a hook":     writes("POST", "/jobs"),
		"at an apply":   writes("PATCH", "/configmaps/c"),
		"at a deletion": writes("DELETE", "/configmaps/only1"),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ok("install", "x", first, "--no-hooks", "--wait=false")
			other := *w // the second run comes by another way
			p := w.proxied()

			cmd, done := w.command(deployerBinary, "upgrade", "x", second, "--timeout", "10m") // also while it is stopped
			started, stopped, goOn := make(chan struct{}), make(chan struct{}), make(chan struct{})
			p.arm(&fate{at: at, when: after, do: func() {
				<-started
				_ = cmd.Process.Signal(syscall.SIGSTOP)
				close(stopped)
				<-goOn
			}})
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			close(started)
			select {
			case <-stopped:
			case <-time.After(waitTimeout):
				t.Fatal("it never came to where it is stopped")
			}

			r := other.ok("upgrade", "x", first, "--set", "taken=over")
			w.says(r, "stderr", "waiting for another run on release x", "revision 2 was left pending-upgrade")
			before := decided(withoutHooks(w.everything()), w.ns)
			silent := len(p.seen())

			close(goOn)
			if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			r = done(cmd.Wait())
			if r.code != 1 {
				t.Errorf("want exit code 1:\n%s", r)
			}
			w.says(r, "stderr", "no longer holds release "+w.ns+"/x")
			for _, c := range p.seen()[silent:] {
				if c.write() && c.code < 300 {
					t.Errorf("it changed something after it had lost the release: %v", c)
				}
			}
			w.same("afterwards", decided(withoutHooks(w.everything()), w.ns), before)
			w.statuses("x", "superseded", "failed", "deployed")
		})
	}
}

// writes is the first call that changes something by a method at a path with that
// end.
func writes(method, end string) func(int, call) bool {
	return func(_ int, c call) bool {
		path, _, _ := strings.Cut(c.path, "?")
		return c.write() && c.method == method && strings.HasSuffix(path, end)
	}
}
