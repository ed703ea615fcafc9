package e2e

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// slowedCalls are parts of an API server that is in trouble while all else of it answers.
var slowedCalls = map[string]func(call) bool{
	"records":   func(c call) bool { return strings.Contains(c.path, "/secrets") },
	"locks":     func(c call) bool { return strings.Contains(c.path, "/leases") },
	"objects":   func(c call) bool { return strings.Contains(c.path, "/configmaps") },
	"discovery": func(c call) bool { return !strings.Contains(c.path, "/namespaces/") },
	"all":       func(call) bool { return true },
}

// TestCommandsEndWhereAPartOfTheServerIsInTrouble: whichever calls are answered without end, each command that
// asks the cluster comes to an end by its --timeout.
func TestCommandsEndWhereAPartOfTheServerIsInTrouble(t *testing.T) {
	w := newWorld(t)
	p := w.proxied()
	w.ok("install", "x", w.chart(configMap("a", "1")))
	w.ok("upgrade", "x", w.chart(configMap("a", "2")))
	chart := w.chart(configMap("a", "3"))
	var all sync.WaitGroup
	places := make(chan struct{}, 16) // they wait most of the time
	for _, line := range []string{
		"upgrade x CHART", "upgrade x CHART --dry-run=server", "plan x CHART", "plan x --drift", "plan --rollback x 1", "rollback x 1", "uninstall x",
		"test x", "recover x", "status x --show-resources", "status x --watch", "history x", "list -A", "get all x", "explain x configmap/a",
		"template x CHART --validate",
	} {
		args := strings.Fields(strings.ReplaceAll(line, "CHART", chart))
		for name, slowed := range slowedCalls {
			all.Go(func() {
				places <- struct{}{}
				defer func() { <-places }()
				trouble := slowServers["a body that trickles"]
				if name == "all" {
					trouble = slowServers["too many requests"]
				}
				r := w.inTrouble(p, slowed, trouble, append(slices.Clone(args), "--timeout", "1s")...)
				if r.code != 0 && r.code != 1 && r.code != 3 || r.code == 0 && name == "all" {
					t.Errorf("%s: want it to end by itself:\n%s", name, r)
				}
			})
		}
	}
	all.Wait()
}

// inTrouble runs deployer against a server in which some calls meet with trouble. Other calls that would change
// something are refused, for many look at one release at once.
func (w *world) inTrouble(p *proxy, slowed func(call) bool, trouble http.HandlerFunc, args ...string) result {
	w.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch c := (call{method: r.Method, path: r.URL.RequestURI()}); {
		case slowed(c):
			trouble(rw, r)
		case c.write():
			refuse(rw, http.StatusForbidden)
		default:
			p.ServeHTTP(rw, r)
		}
	}))
	defer server.Close()
	own := *w
	own.kubeconfig = w.kubeconfigFor(server.URL)
	return own.try(deployerBinary, args...)
}
