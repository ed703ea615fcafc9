package e2e

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// slowServers never come to the end of an answer, each in its way.
var slowServers = map[string]http.HandlerFunc{
	"a body that trickles": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-r.Context().Done():
				return
			case <-ticker.C:
				w.Write([]byte(" "))
				w.(http.Flusher).Flush()
			}
		}
	},
	"connections that are reset": func(w http.ResponseWriter, r *http.Request) {
		if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
			conn.Close()
		}
	},
	"too many requests": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "5")
		w.WriteHeader(http.StatusTooManyRequests)
	},
}

// TestPlanningIsBoundedByTheTimeout: a server that answers without end doesn't hold a
// run for longer than --timeout and a little, and the run says so. That each command ends is
// TestCommandsEndWhereAPartOfTheServerIsInTrouble.
func TestPlanningIsBoundedByTheTimeout(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"a body that trickles": {"upgrade", "--install", "x", "CHART"}, "connections that are reset": {"uninstall", "x"}, "too many requests": {"rollback", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			server := httptest.NewServer(slowServers[name])
			t.Cleanup(server.Close)
			w.kubeconfig = w.kubeconfigFor(server.URL)
			if last := len(args) - 1; args[last] == "CHART" {
				args[last] = w.chart(configMap("a", "1"))
			}
			// Without a bound the first ends with the test, the last after minutes.
			r := w.exits(1, append(args, "--timeout", "1s")...)
			if name != "connections that are reset" {
				w.says(r, "stderr", "planning took more than 11s")
			}
		})
	}
}

// TestShortTimeoutTakesOverFromADeadRun: --timeout is about waiting for objects. A short one must leave enough time to find
// that the run that holds the lock is dead, or each run would fail until somebody deletes the Lease.
func TestShortTimeoutTakesOverFromADeadRun(t *testing.T) {
	w := newWorld(t)
	w.create("leases", "deployer", `apiVersion: coordination.k8s.io/v1
kind: Lease
metadata:
  name: deployer-x
spec:
  holderIdentity: a run on a machine that is gone
  leaseDurationSeconds: 13 # longer than the time for steps before the first change, which is 11s
`)
	w.ok("install", "x", w.chart(configMap("a", "1")), "--timeout", "1s")
}
