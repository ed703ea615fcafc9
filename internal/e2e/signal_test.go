package e2e

import (
	"fmt"
	"os"
	"syscall"
	"testing"
)

// TestSignalAtEveryCall sends SIGTERM or SIGINT to install, upgrade, rollback and
// uninstall at each call to the API server. The run has to end by itself with the
// shell's code of the signal, the record has to say so, and the next run has to
// work (S112). Without DEPLOYER_TEST_LONG a sample is run.
func TestSignalAtEveryCall(t *testing.T) {
	charts := map[string]string{"CHART1": writeTwenty(t, 1), "CHART2": writeTwenty(t, 2)}
	fresh := freshInstalls(t, charts)
	for name, d := range deaths {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sweep{death: d, charts: charts, fresh: fresh}
			for _, at := range s.signalPoints(s.count(t)) {
				signal := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT}[at.at%2]
				t.Run(fmt.Sprintf("%d %s", at.at, d.next[at.next][0]), func(t *testing.T) {
					t.Parallel()
					s.stop(t, at, signal)
				})
			}
		})
	}
}

// signalEvery is how many calls lie between two signals of the sample.
const signalEvery = 25

// signalPoints are the calls at which a signal comes.
func (s *sweep) signalPoints(calls []call) []point {
	every := signalEvery
	if os.Getenv(longEnv) != "" {
		every = 1
	}
	var out []point
	for at := every; at <= len(calls); at += every {
		out = append(out, point{at, before, len(out) % len(s.next)})
	}
	return out
}

// stop sends a signal at a point and checks how the run ends, and the next one.
func (s *sweep) stop(t *testing.T, at point, signal syscall.Signal) {
	w, p := s.world(t)
	r := w.struck(p, fate{at: nth(at.at), when: at.when}, signal, s.filled(s.killed)...)
	statuses := w.revisions("x")
	newest := statuses[len(statuses)]
	switch code := 128 + int(signal); {
	case r.code == 0: // it came when everything was done
		if !s.over(w) {
			t.Errorf("it says that it is done, and isn't:\n%s", r)
		}
	case r.code != code:
		t.Errorf("want exit code %d:\n%s", code, r)
	default:
		w.says(r, "stderr", map[syscall.Signal]string{syscall.SIGTERM: "SIGTERM", syscall.SIGINT: "SIGINT"}[signal])
		if w.get("leases", "deployer-x") != nil {
			t.Errorf("its Lease is left:\n%s", r)
		}
		begun := len(statuses) > len(s.setup) && s.killed[0] != "uninstall" || s.killed[0] == "uninstall" && newest != "deployed"
		if begun && newest != "failed" && newest != "uninstalled" && newest != "" {
			t.Errorf("its revision is %s:\n%s", newest, r)
		}
	}
	next := w.ok(s.filled(s.next[at.next])...)
	s.converged(w, at.next)
	if t.Failed() {
		t.Logf("stopped: %s\nthe next run: %s\nwhat both wrote: %v", r, next, w.written(p))
	}
}
