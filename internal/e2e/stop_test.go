package e2e

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Ctrl-C with --atomic goes back to where the release was, unless told not to.
func TestStoppedAtomic(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flags    []string
		statuses []string
		value    string
	}{
		"goes back":                     {nil, []string{"superseded", "failed", "deployed"}, "1"},
		"unless told to leave it as is": {[]string{"--rollback-on-interrupt=false"}, []string{"deployed", "failed"}, "2"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ok("install", "x", w.chart(configMap("a", "1")))
			cmd, done := w.start(append([]string{"upgrade", "x", w.endless(), "--atomic"}, c.flags...)...)
			w.waiting()
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			r := done(cmd.Wait())
			if r.code != 143 {
				t.Errorf("want exit code 143:\n%s", r)
			}
			w.says(r, "stderr", "SIGTERM")
			w.statuses("x", c.statuses...)
			if got := field(w.must("configmaps", "a"), "data.key"); got != c.value {
				t.Errorf("ConfigMap/a has key = %v, want %s:\n%s", got, c.value, r)
			}
		})
	}
}

// One stop arrives twice: timeout(1) signals its child and then its process group, and so do npm, sudo and runners of CI.
func TestOneStopThatArrivesTwice(t *testing.T) {
	w := newWorld(t)
	w.ok("install", "x", w.chart(configMap("a", "1")))
	cmd, done := w.start("upgrade", "x", w.endless(), "--atomic")
	w.waiting()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} { // two of a kind may be taken for one
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
	}
	r := done(cmd.Wait())
	if r.code != 143 && r.code != 130 && r.code != 129 {
		t.Errorf("want the exit code of a signal:\n%s", r)
	}
	w.says(r, "stderr", `stopping +SIG\S+: the run ends here and is rolled back; send it once more to give up`)
	w.statuses("x", "superseded", "failed", "deployed")
	if got := field(w.must("configmaps", "a"), "data.key"); got != "1" {
		t.Errorf("ConfigMap/a has key = %v, want 1:\n%s", got, r)
	}
	if w.get("leases", "deployer-x") != nil {
		t.Errorf("its Lease is left:\n%s", r)
	}
}

// Whoever only waits in the queue leaves nothing.
func TestStoppedInTheQueue(t *testing.T) {
	w := newWorld(t)
	w.ok("install", "x", w.chart(configMap("a", "1")))
	first, firstDone := w.start("upgrade", "x", w.endless())
	w.waiting()
	for _, args := range [][]string{
		{"upgrade", "x", w.chart(configMap("a", "3"))}, {"rollback", "x", "1"}, {"uninstall", "x"}, {"recover", "x"},
	} {
		other := *w
		p := other.proxied()
		// The second look at the Lease is one of somebody who waits.
		looks := 0
		waits := func(_ int, c call) bool {
			if c.method == "GET" && strings.Contains(c.path, "/leases/") {
				looks++
			}
			return looks == 2 // of somebody who waits
		}
		r := other.struck(p, fate{at: waits, when: before}, syscall.SIGINT, append(args, "--lock-timeout", "2m")...)
		if r.code != 130 {
			t.Errorf("want exit code 130:\n%s", r)
		}
		for _, c := range p.seen() {
			if c.write() && c.code != http.StatusConflict { // the Lease that it would have made
				t.Errorf("%v wrote while it waited: %v", args, c)
			}
		}
	}
	w.statuses("x", "deployed", "pending-upgrade")
	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if r := firstDone(first.Wait()); r.code != 143 {
		t.Errorf("want exit code 143:\n%s", r)
	}
}

// A second signal, two seconds after the first or later, ends the run at once; the next run settles what it left.
func TestSecondSignal(t *testing.T) {
	w := newWorld(t)
	w.ok("install", "x", w.chart(configMap("a", "1")))
	p := w.proxied()
	cmd, done := w.command(deployerBinary, "upgrade", "x", w.chart(configMap("a", "2")))
	started, sent, goOn := make(chan struct{}), make(chan struct{}), make(chan struct{})
	defer close(goOn)
	// When the first one comes, an answer is awaited that doesn't come.
	p.arm(&fate{at: writes("PATCH", "/configmaps/a"), when: after, do: func() {
		<-started
		_ = cmd.Process.Signal(syscall.SIGINT)
		close(sent)
		<-goOn
	}})
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	close(started)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	<-sent
	// A process has no two signals of a kind waiting: it may take some.
	w.eventually("the run ends", func() bool { return cmd.Process.Signal(syscall.SIGINT) != nil })
	if r := done(<-ended); r.code != 130 {
		t.Errorf("want exit code 130:\n%s", r)
	}
	w.statuses("x", "deployed", "pending-upgrade")
	other := *w
	other.kubeconfig = w.user.Kubeconfig(t, w.ns)
	other.ok("upgrade", "x", w.chart(configMap("a", "3")))
	w.statuses("x", "superseded", "failed", "deployed")
}

// The end is recorded although the API server doesn't answer what was under way:
// a webhook may take half a minute.
func TestStoppedWhileAnAnswerIsAwaited(t *testing.T) {
	w := newWorld(t)
	w.ok("install", "x", w.chart(configMap("a", "1")))
	p := w.proxied()
	goOn := make(chan struct{})
	defer close(goOn)
	cmd, done := w.command(deployerBinary, "upgrade", "x", w.chart(configMap("a", "2")))
	started, stopped := make(chan struct{}), make(chan time.Time, 1)
	p.arm(&fate{at: writes("PATCH", "/configmaps/a"), when: after, do: func() {
		<-started
		stopped <- time.Now()
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-goOn
	}})
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	close(started)
	r := done(cmd.Wait())
	if r.code != 143 {
		t.Errorf("want exit code 143:\n%s", r)
	}
	// An API server's own limit is 34 s; CI systems wait for 10.
	if took := time.Since(<-stopped); took > 25*time.Second {
		t.Errorf("it took %s to end:\n%s", took, r)
	}
	w.statuses("x", "deployed", "failed")
}

// A signal ends the command with the release that it meets: the others are named, once.
func TestStoppedBetweenReleases(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"x", "y", "z"} {
		w.ok("install", name, w.chart(configMap("of-"+name, "1")))
	}
	other := *w
	r := other.struck(other.proxied(), fate{at: writes("DELETE", "/configmaps/of-x"), when: after}, syscall.SIGINT, "uninstall", "x", "y", "z")
	if r.code != 130 {
		t.Errorf("want exit code 130:\n%s", r)
	}
	// The command may notice the signal only when it has begun to read what belongs to y.
	w.says(r, "stderr", `not uninstalled: y, z|ConfigMap/\S+/of-y: .*not uninstalled: z`)
	if n := strings.Count(r.err, "SIGINT"); n > 4 {
		t.Errorf("SIGINT is told %d times:\n%s", n, r)
	}
	w.statuses("y", "deployed")
	w.statuses("z", "deployed")
}
