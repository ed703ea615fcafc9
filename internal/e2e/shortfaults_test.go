package e2e

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	api "k8s.io/client-go/tools/clientcmd/api"

	"deployer/internal/kubetest"
)

// shortFaults are what an API server, or what is in front of it, may answer for half a second.
var shortFaults = map[string]int{
	"401": 401, "403": 403, "404": 404, "429": 429, "500": 500, "gateway": gateway, "broken connection": hangUp,
	"refused connection": refused, "expired token": expired,
}

// These faults are more than one answer.
const (
	gateway = -4 // 502, 503 or 504
	refused = -2 // nobody listens
	expired = -3 // the token that a credential plugin gave is wrong from now on, and another one is right
)

// faultyRuns are the commands that change a release, and what they are to leave.
var faultyRuns = map[string]struct {
	setup  []string // a command before it, which succeeds
	killed []string // a command after that, which dies at its first object
	args   []string
	wants  []string // statuses
}{
	"install":   {nil, nil, []string{"install", "x", "CHART1"}, []string{"deployed"}},
	"upgrade":   {[]string{"install", "x", "CHART1"}, nil, []string{"upgrade", "x", "CHART2", "--history-max", "1"}, []string{"deployed"}},
	"rollback":  {[]string{"install", "x", "CHART1"}, nil, []string{"rollback", "x", "1"}, []string{"superseded", "deployed"}},
	"uninstall": {[]string{"install", "x", "CHART1"}, nil, []string{"uninstall", "x"}, nil},
	"recover":   {[]string{"install", "x", "CHART1"}, []string{"upgrade", "x", "CHART2"}, []string{"recover", "x"}, []string{"deployed", "failed"}},
}

// faultyChart has little of everything that makes requests of its own: an object that changes, one that is dropped, one whose
// pods are awaited, one that is recreated, and a hook.
func faultyChart(w *world, version string) string {
	templates := []string{configMap("changes", version), configMap("only"+version, ""), deployment("web", "web", "  replicas: 1"),
		job("work", "example.com/x: once", `[{"phase":"Succeeded","state":{"terminated":{"exitCode":0,"reason":"Completed"}}}]`, "r/x:"+version)}
	for _, event := range []string{"pre-install", "pre-upgrade", "pre-rollback", "pre-delete"} {
		templates = append(templates, hookJob(event, event, "hook-succeeded", false))
	}
	return w.chart(templates...)
}

// TestRunsOutlastFaultsOfHalfASecond lets everything fail for half a second from one request on: the run goes on, and its
// record isn't left pending. With DEPLOYER_TEST_LONG it meets each kind of fault at each request, otherwise each request of
// a few with one kind.
func TestRunsOutlastFaultsOfHalfASecond(t *testing.T) {
	t.Parallel()
	kinds := slices.Sorted(maps.Keys(shortFaults))
	const every = 24 // of the requests
	for name, run := range faultyRuns {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := func(t *testing.T) (w *world, p *proxy, args []string) {
				w = worldOf(t)
				charts := map[string]string{"CHART1": faultyChart(w, "1"), "CHART2": faultyChart(w, "2")}
				filled := func(args []string) []string {
					out := slices.Clone(args)
					for i, arg := range out {
						out[i] = cmp.Or(charts[arg], arg)
					}
					return out
				}
				p = w.proxied()
				if run.setup != nil {
					w.ok(append(filled(run.setup), "--no-hooks", "--wait=false")...)
				}
				if run.killed != nil {
					w.struck(p, fate{when: after, dies: true, at: func(_ int, c call) bool { return c.write() && c.method == http.MethodPatch }}, syscall.SIGKILL, filled(run.killed)...)
				}
				p.arm(nil)
				return w, p, filled(run.args)
			}
			w, p, args := begin(t)
			w.ok(args...)
			requests := len(p.seen())
			for n := 1; n <= requests; n++ {
				for i, kind := range kinds {
					if os.Getenv(longEnv) == "" && (n%every != len(name)%every || i != n%len(kinds)) {
						continue
					}
					t.Run(fmt.Sprintf("%s at request %d", kind, n), func(t *testing.T) {
						t.Parallel()
						w, p, args := begin(t)
						p.failing(w.forHalfASecond(p, n, shortFaults[kind]))
						w.ok(args...)
						p.failing(nil)
						w.statuses("x", run.wants...)
						if t.Failed() {
							t.Logf("it failed from %v on", p.seen()[n-1])
						}
					})
				}
			}
		})
	}
}

// forHalfASecond answers with a code from the n-th call on, for half a second. Watches last.
func (w *world) forHalfASecond(p *proxy, n, code int) fault {
	w.Helper()
	token := ""
	switch code {
	case expired:
		token = w.plugin(p)
	case gateway:
		code = http.StatusBadGateway + n%3
	}
	var began time.Time
	return func(i int, c call) int {
		if i < n {
			return 0
		}
		first := began.IsZero()
		if first {
			began = time.Now()
		}
		switch {
		case code == expired:
			if first {
				if err := os.WriteFile(token, []byte("new"), 0o600); err != nil {
					panic(err)
				}
			}
			if c.authorization != "Bearer new" {
				return http.StatusUnauthorized
			}
			return 0
		case code == refused:
			if first {
				p.leave(time.Second / 2)
				return hangUp
			}
			return 0
		case time.Since(began) > time.Second/2 || strings.Contains(c.path, "watch="):
			return 0
		}
		return code
	}
}

// plugin gives the world a credential plugin, and returns the file that has its token.
func (w *world) plugin(p *proxy) string {
	w.Helper()
	dir := w.TempDir()
	token, program := filepath.Join(dir, "token"), filepath.Join(dir, "plugin")
	script := `#!/bin/sh
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"'$(cat ` + token + `)'"}}'
`
	if err := errors.Join(os.WriteFile(token, []byte("old"), 0o600), os.WriteFile(program, []byte(script), 0o700)); err != nil {
		w.Fatal(err)
	}
	secure := httptest.NewTLSServer(p) // without TLS, no token is sent
	w.Cleanup(secure.Close)
	w.kubeconfig = w.kubeconfigAs(secure.URL, &api.AuthInfo{Exec: &api.ExecConfig{
		Command: program, APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: api.NeverExecInteractiveMode,
	}})
	return token
}

// TestMissingPermissionsAreToldAtOnce fails if a 403 that the API server's review confirms is taken for a fault, and asked about again.
func TestMissingPermissionsAreToldAtOnce(t *testing.T) {
	w := newWorld(t)
	user := w.cluster.User(t, w.ns)
	w.kubeconfig = user.Kubeconfig(t, w.ns)
	w.says(w.exits(1, "history", "x"), "stderr", "cannot list resource \"secrets\"")
	lists := slices.DeleteFunc(w.cluster.Audit(t, user.Name), func(e kubetest.AuditEvent) bool { return e.Object.Resource != "secrets" })
	if len(lists) > 2 { // metadata, and the newest records
		t.Errorf("Secrets were listed %d times, want twice at most", len(lists))
	}
}
