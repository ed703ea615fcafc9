package e2e

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// shortFaults are what an API server, or what is in front of it, may answer for half a second.
var shortFaults = map[string]int{
	"401": 401, "403": 403, "404": 404, "429": 429, "500": 500, "502": 502, "503": 503, "504": 504, "broken connection": hangUp,
}

// faultyRuns are the commands that change a release, and what they are to leave.
var faultyRuns = map[string]struct {
	setup []string // a command before it, which succeeds
	args  []string
	wants []string // statuses
}{
	"install":   {nil, []string{"install", "x", "CHART1"}, []string{"deployed"}},
	"upgrade":   {[]string{"install", "x", "CHART1"}, []string{"upgrade", "x", "CHART2", "--history-max", "1"}, []string{"deployed"}},
	"rollback":  {[]string{"install", "x", "CHART1"}, []string{"rollback", "x", "1"}, []string{"superseded", "deployed"}},
	"uninstall": {[]string{"install", "x", "CHART1"}, []string{"uninstall", "x"}, nil},
	"recover":   {[]string{"install", "x", "CHART1"}, []string{"recover", "x"}, []string{"deployed"}},
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
			charts := map[string]string{"CHART1": writeTwenty(t, 1), "CHART2": writeTwenty(t, 2)}
			filled := func(args []string) []string {
				out := slices.Clone(args)
				for i, arg := range out {
					if dir, ok := charts[arg]; ok {
						out[i] = dir
					}
				}
				return out
			}
			begin := func(t *testing.T) (*world, *proxy) {
				w := worldOf(t)
				p := w.proxied()
				if run.setup != nil {
					w.ok(append(filled(run.setup), "--no-hooks", "--wait=false")...)
				}
				p.arm(nil)
				return w, p
			}
			w, p := begin(t)
			w.ok(filled(run.args)...)
			requests := len(p.seen())
			for n := 1; n <= requests; n++ {
				for i, kind := range kinds {
					if os.Getenv(longEnv) == "" && (n%every != len(name)%every || i != n/every%len(kinds)) {
						continue
					}
					t.Run(fmt.Sprintf("%s at request %d", kind, n), func(t *testing.T) {
						t.Parallel()
						w, p := begin(t)
						p.failing(forHalfASecond(n, shortFaults[kind]))
						w.ok(filled(run.args)...)
						p.failing(nil)
						w.statuses("x", run.wants...)
					})
				}
			}
		})
	}
}

// forHalfASecond answers with a code from the n-th call on, for half a second. Watches last.
func forHalfASecond(n, code int) fault {
	var began time.Time
	var once sync.Once
	return func(i int, c call) int {
		if i < n {
			return 0
		}
		once.Do(func() { began = time.Now() })
		if time.Since(began) > time.Second/2 || strings.Contains(c.path, "watch=") {
			return 0
		}
		return code
	}
}

// TestMissingPermissionsAreToldAtOnce: a 403 that the API server's review confirms isn't taken for a fault.
func TestMissingPermissionsAreToldAtOnce(t *testing.T) {
	w := newWorld(t)
	user := w.cluster.User(t, w.ns)
	w.kubeconfig = user.Kubeconfig(t, w.ns)
	r := w.exits(1, "history", "x")
	w.says(r, "stderr", "cannot list resource \"secrets\"")
	if r.took > 2*time.Second {
		t.Errorf("it took %s", r.took)
	}
}
