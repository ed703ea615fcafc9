package e2e

import (
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestSignalAtEveryCall sends SIGTERM, SIGINT or SIGHUP to install, upgrade, rollback and
// uninstall at each call to the API server. The run has to end by itself with the
// shell's code of the signal, the record has to say so, and the next run has to
// work. Without DEPLOYER_TEST_LONG a sample is run.
func TestSignalAtEveryCall(t *testing.T) {
	all := maps.Clone(deaths)
	atomic := deaths["upgrade"]
	atomic.killed, atomic.stops = append(atomic.killed, "--atomic"), nil // TestStoppedAtomic is its sample
	all["atomic upgrade"] = atomic
	forEach(t, all, (*sweep).signalPoints, (*sweep).stop)
}

// signalPoints are the points at which a signal comes, one or the other in turn.
func (s *sweep) signalPoints(t *testing.T) []point {
	points := slices.Clone(s.stops)
	if os.Getenv(longEnv) != "" {
		for n := range s.count(t) {
			points = append(points, nth(n+1, before, n%len(s.next)))
		}
	}
	for i := range points {
		points[i].signal = []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP}[i%3]
	}
	return points
}

// stop sends a signal at a point and checks how the run ends, and the next one.
func (s *sweep) stop(t *testing.T, at point) {
	w, p := s.world(t)
	r := w.struck(p, fate{at: at.at, when: at.when}, at.signal, s.filled(s.killed)...)
	switch code := 128 + int(at.signal); {
	case r.code == 0: // it came when everything was done
		if !s.over(w) {
			t.Errorf("it says that it is done, and isn't:\n%s", r)
		}
	case r.code != code:
		t.Errorf("want exit code %d:\n%s", code, r)
	default:
		name := map[syscall.Signal]string{syscall.SIGTERM: "SIGTERM", syscall.SIGINT: "SIGINT", syscall.SIGHUP: "SIGHUP"}[at.signal]
		w.says(r, "stderr", name)
		if s.settled(w, r) == "failed" {
			w.says(w.ok("history", "x"), "stdout", name)
		}
	}
	next := w.ok(s.filled(s.next[at.next])...)
	s.converged(w, at.next)
	if t.Failed() {
		t.Logf("stopped: %s\nthe next run: %s\nwhat both wrote: %v", r, next, w.written(p))
	}
}

// settled checks what a run that was stopped has left: a revision that says so,
// if it had begun one, and no lock. It returns what the revision says.
func (s *sweep) settled(w *world, r result) string {
	w.Helper()
	if w.get("leases", "deployer-x") != nil {
		w.Errorf("its Lease is left:\n%s", r)
	}
	statuses := w.revisions("x")
	if len(statuses) == 0 || s.killed[0] != "uninstall" && len(statuses) == len(s.setup) {
		return "" // it had not begun, or was as good as done
	}
	want := []string{"failed"}
	switch {
	case s.killed[0] == "uninstall":
		want = []string{"deployed", "failed", "uninstalled"}
	case s.killed[len(s.killed)-1] == "--atomic":
		want = []string{"deployed"} // the rollback
	}
	newest := statuses[len(statuses)]
	if !slices.Contains(want, newest) {
		w.Errorf("its revision is %s, want %v:\n%s", newest, want, r)
	}
	return newest
}

// TestSignalWhileValuesAreRead: a command whose input never ends says what ended it.
func TestSignalWhileValuesAreRead(t *testing.T) {
	w := worldOf(t)
	cmd, done := w.command(deployerBinary, "template", w.chart(configMap("a", "1")), "-f", "-")
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := input.Write(make([]byte, 1<<20)); err != nil { // more than a pipe holds: it is being read
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if r := done(cmd.Wait()); r.code != 143 || !strings.Contains(r.err, "stopped by SIGTERM") {
		t.Errorf("want exit code 143 and the signal's name:\n%s", r)
	}
}
