package e2e

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// longEnv asks for the tests that take long: all of what is sampled otherwise.
const longEnv = "DEPLOYER_TEST_LONG"

// A death is a command that is killed at one of its calls to the API server, and
// what the next runs make of it.
type death struct {
	setup  [][]string // commands before it, which succeed; CHART1 and CHART2 are charts
	killed []string
	next   [][]string // what may follow, each for itself; the first is the same once more
	wants  []string   // the release as each of next leaves it: CHART1, CHART2; "" for nothing
	sample []point    // where it dies unless all points are asked for
	stops  []point    // where a signal comes then
}

// A point is where a command gets a signal, and which of the next runs follows.
type point struct {
	name   string
	at     func(n int, c call) bool // see fate
	when   moment
	next   int
	signal syscall.Signal
}

// at is a point at the first write of a kind.
func at(when moment, method, end string, next int) point {
	return point{name: method + end, at: writes(method, end), when: when, next: next, signal: syscall.SIGKILL}
}

// nth is a point at the n-th call.
func nth(n int, when moment, next int) point {
	return point{name: fmt.Sprint(n), at: func(i int, _ call) bool { return i == n }, when: when, next: next, signal: syscall.SIGKILL}
}

// following is a point at which a hook is waited for.
func following(job string, next int) point {
	watched := func(_ int, c call) bool {
		return strings.Contains(c.path, "/jobs?") && strings.Contains(c.path, "metadata.name%3D"+job+"&")
	}
	return point{name: job, at: watched, when: before, next: next}
}

// deaths are the commands that change a release.
var deaths = map[string]death{
	"install": {
		killed: []string{"install", "x", "CHART1"},
		next:   [][]string{{"upgrade", "--install", "x", "CHART1"}, {"uninstall", "x", "--ignore-not-found"}, {"upgrade", "--install", "x", "CHART2"}},
		wants:  []string{"CHART1", "", "CHART2"},
		sample: []point{at(after, "POST", "/secrets", 0), at(after, "POST", "/jobs", 2), at(after, "PATCH", "/configmaps/c", 1)},
		stops:  []point{at(before, "POST", "/leases", 0), at(before, "POST", "/secrets", 0), at(before, "PATCH", "/configmaps/c", 1)},
	},
	"upgrade": {
		setup:  [][]string{{"install", "x", "CHART1"}},
		killed: []string{"upgrade", "x", "CHART2"},
		next:   [][]string{{"upgrade", "x", "CHART2"}, {"rollback", "x", "1"}, {"uninstall", "x"}},
		wants:  []string{"CHART2", "CHART1", ""},
		sample: []point{
			at(after, "POST", "/leases", 0), at(after, "POST", "/jobs", 0), at(after, "PATCH", "/deployments/one", 0),
			at(after, "DELETE", "/jobs/work", 1), at(after, "DELETE", "/configmaps/only1", 2), at(after, "PUT", "/sh.deployer.release.v1.x.v2.journal", 1),
			at(before, "DELETE", "/sh.deployer.release.v1.x.v2.journal", 2),
			at(after, "DELETE", "/jobs/post-upgrade-2", 0), at(before, "PUT", "/sh.helm.release.v1.x.v1", 1), at(before, "DELETE", "/leases/deployer-x", 0),
		},
		stops: []point{following("pre-upgrade-1", 0), at(before, "PATCH", "/deployments/one", 1), at(after, "DELETE", "/configmaps/only1", 2)},
	},
	"rollback": {
		setup:  [][]string{{"install", "x", "CHART1"}, {"upgrade", "x", "CHART2"}},
		killed: []string{"rollback", "x", "1"},
		next:   [][]string{{"rollback", "x", "1"}, {"upgrade", "x", "CHART2"}, {"uninstall", "x"}},
		wants:  []string{"CHART1", "CHART2", ""},
		sample: []point{at(after, "POST", "/secrets", 2), at(before, "PATCH", "/services/b", 1), at(after, "DELETE", "/jobs/post-rollback-2", 0)},
		stops:  []point{following("pre-rollback-2", 0), at(before, "PATCH", "/services/b", 1)},
	},
	"uninstall": {
		setup:  [][]string{{"install", "x", "CHART1"}},
		killed: []string{"uninstall", "x"},
		next:   [][]string{{"uninstall", "x", "--ignore-not-found"}, {"upgrade", "--install", "x", "CHART2"}},
		wants:  []string{"", "CHART2"},
		sample: []point{
			at(after, "POST", "/jobs", 0), at(after, "DELETE", "/configmaps/c", 1),
			at(after, "DELETE", "/jobs/post-delete-2", 0), at(after, "DELETE", "/sh.helm.release.v1.x.v1", 0),
		},
		stops: []point{at(before, "POST", "/jobs", 0), at(after, "DELETE", "/configmaps/c", 1), following("post-delete-1", 0)},
	},
}

// TestKilledAtEveryCall kills install, upgrade, rollback and uninstall of some
// twenty objects with hooks at each call to the API server, before it is sent
// and after it is committed but before the answer. The next run has to take over
// by itself: afterwards everything is as if there had been no killed run, and no
// hook has run twice. Without DEPLOYER_TEST_LONG a sample is run.
func TestKilledAtEveryCall(t *testing.T) {
	forEach(t, deaths, func(s *sweep, t *testing.T) []point {
		if os.Getenv(longEnv) == "" {
			return s.sample
		}
		return s.everyDeath(s.count(t))
	}, (*sweep).die)
}

// forEach runs a test for each of the points that are chosen of each death.
func forEach(t *testing.T, deaths map[string]death, choose func(*sweep, *testing.T) []point, test func(*sweep, *testing.T, point)) {
	t.Parallel()
	charts := map[string]string{"CHART1": writeTwenty(t, 1), "CHART2": writeTwenty(t, 2)}
	fresh := freshInstalls(t, charts)
	for name, d := range deaths {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &sweep{death: d, charts: charts, fresh: fresh}
			for _, p := range choose(s, t) {
				when, _, _ := strings.Cut(string(p.when), " ")
				t.Run(fmt.Sprintf("%s %s %s", when, p.name, d.next[p.next][0]), func(t *testing.T) {
					t.Parallel()
					test(s, t, p)
				})
			}
		})
	}
}

// freshInstalls tells what an install of each chart makes.
func freshInstalls(t *testing.T, charts map[string]string) map[string]map[string]any {
	t.Helper()
	fresh := map[string]map[string]any{}
	for name := range charts {
		w := worldOf(t)
		w.ok("install", "x", charts[name], "--no-hooks")
		fresh[name] = decided(withoutHooks(w.everything()), w.ns)
	}
	return fresh
}

// everyDeath are all points to die at: each call before it is sent, and each
// write when it is committed with all that may follow.
func (s *sweep) everyDeath(calls []call) []point {
	var all []point
	for i, c := range calls {
		n := i + 1
		if !c.write() {
			all = append(all, nth(n, before, n%len(s.next)))
			continue
		}
		all = append(all, nth(n, before, 0))
		for next := range s.next {
			all = append(all, nth(n, after, next))
		}
	}
	return all
}

// A sweep runs one death at many points.
type sweep struct {
	death
	charts map[string]string
	fresh  map[string]map[string]any // what a fresh install of each chart makes
}

// filled puts the charts into a command line.
func (s *sweep) filled(args []string) []string {
	out := slices.Clone(args)
	for i, a := range out {
		if dir, ok := s.charts[a]; ok {
			out[i] = dir
		}
	}
	return out
}

func (s *sweep) world(t *testing.T) (*world, *proxy) {
	t.Helper()
	w := worldOf(t)
	p := w.proxied()
	for _, args := range s.setup {
		w.ok(append(s.filled(args), "--no-hooks", "--wait=false")...)
	}
	return w, p
}

// count runs the command undisturbed and gives its calls.
func (s *sweep) count(t *testing.T) []call {
	t.Helper()
	w, p := s.world(t)
	p.arm(nil)
	w.ok(s.filled(s.killed)...)
	return p.seen()
}

// die kills the command at a point and checks what the next run makes of it.
func (s *sweep) die(t *testing.T, at point) {
	w, p := s.world(t)
	killed := w.killedAt(p, at, s.filled(s.killed)...)
	fatal := p.seen()
	over, left := s.over(w), w.unfinished("x")
	next := w.ok(s.filled(s.next[at.next])...)
	if left != "" {
		w.says(next, "stderr", left+` by .*, pid \d+, interrupted (before its first step|in step [^;]+); it is recorded as failed now`)
	}
	s.converged(w, at.next)
	if at.next == 0 && !over {
		s.hooksRanOnce(t, p.made())
	}
	if want := s.wants[at.next]; want != "" && (os.Getenv(longEnv) != "" || at.name == s.sample[0].name) {
		w.helmGoesOn(s.charts[want])
		s.converged(w, at.next)
	}
	if t.Failed() {
		t.Logf("died at %v\n%s\nthe next run: %s\nwhat both wrote: %v", fatal[len(fatal)-1], killed, next, w.written(p))
	}
}

// unfinished is what the next run says of a revision that a dead run has left;
// empty when there is none.
func (w *world) unfinished(name string) string {
	w.Helper()
	for revision, status := range w.revisions(name) {
		if strings.HasPrefix(status, "pending-") || status == "uninstalling" {
			return fmt.Sprintf("revision %d was left %s", revision, status)
		}
	}
	return ""
}

// hooksRanOnce checks that two runs together have made each hook of the command
// once.
func (s *sweep) hooksRanOnce(t *testing.T, made map[string]int) {
	t.Helper()
	event := strings.Replace(s.killed[0], "uninstall", "delete", 1)
	want := map[string]int{}
	for _, hook := range []string{"pre-%s-1", "pre-%s-2", "post-%s-1", "post-%s-2"} {
		want[fmt.Sprintf(hook, event)] = 1
	}
	if !maps.Equal(made, want) {
		t.Errorf("hooks were created so often: %v, want %v", made, want)
	}
}

// written are the writes that a proxy saw, a line each.
func (w *world) written(p *proxy) string {
	var out strings.Builder
	for _, c := range p.seen() {
		if c.write() {
			path, _, _ := strings.Cut(c.path, "?")
			fmt.Fprintf(&out, "\n%s %s %d", c.method, strings.ReplaceAll(path, w.ns, "NS"), c.code)
		}
	}
	return out.String()
}

// converged checks that everything is as if only the next command had been run.
func (s *sweep) converged(w *world, next int) {
	w.Helper()
	want := s.wants[next]
	w.consistent("x", want != "")
	if want == "" {
		w.nothingLeft(keys(onlyHooks(w.everything()))...)
		return
	}
	w.same("after the next run", decided(withoutHooks(w.everything()), w.ns), s.fresh[want])
}

// over reports whether a command that died had recorded that it was done: the same
// command is then another run.
func (s *sweep) over(w *world) bool {
	w.Helper()
	statuses := w.revisions("x")
	if s.killed[0] == "uninstall" {
		return len(statuses) == 0 || statuses[len(s.setup)] == "uninstalled"
	}
	return statuses[len(s.setup)+1] == "deployed"
}

// killedAt runs deployer until it dies at a point.
func (w *world) killedAt(p *proxy, at point, args ...string) result {
	w.Helper()
	r := w.struck(p, fate{at: at.at, when: at.when, dies: true}, at.signal, args...)
	if r.code != 128+int(syscall.SIGKILL) && r.code != 0 {
		w.Fatalf("it wasn't killed, and failed:\n%s", r)
	}
	return r
}

// struck runs deployer, which gets a signal as its fate.
func (w *world) struck(p *proxy, f fate, signal syscall.Signal, args ...string) result {
	w.Helper()
	cmd, done := w.command(deployerBinary, args...)
	started := make(chan struct{})
	f.do = func() {
		<-started
		_ = cmd.Process.Signal(signal) // it may have ended
	}
	p.arm(&f)
	if err := cmd.Start(); err != nil {
		w.Fatalf("starting deployer: %v", err)
	}
	close(started)
	r := done(cmd.Wait())
	p.disarm()
	return r
}

// consistent checks that the revisions of a release have no gap, that the newest
// alone is deployed, and that nobody holds it.
func (w *world) consistent(name string, there bool) {
	w.Helper()
	statuses := w.revisions(name)
	for revision := 1; revision <= len(statuses); revision++ {
		want := "deployed"
		if revision < len(statuses) {
			want = "superseded|failed|uninstalled"
		}
		if got := statuses[revision]; got == "" || !slices.Contains(strings.Split(want, "|"), got) {
			w.Errorf("revision %d of release %s is %q, want %s; all: %v", revision, name, got, want, statuses)
		}
	}
	if there != (len(statuses) > 0) {
		w.Errorf("release %s has %d revisions", name, len(statuses))
	}
	if lease := w.get("leases", "deployer-"+name); lease != nil {
		w.Errorf("Lease/%s/deployer-%s is left: %v", w.ns, name, lease.Object)
	}
}

// revisions are the statuses of a release's revisions.
func (w *world) revisions(name string) map[int]string {
	w.Helper()
	list, err := w.in("secrets").List(w.Context(), metav1.ListOptions{LabelSelector: "owner=helm,name=" + name})
	if err != nil {
		w.Fatal(err)
	}
	statuses := map[int]string{}
	for _, item := range list.Items {
		revision, err := strconv.Atoi(item.GetLabels()["version"])
		if err != nil {
			w.Fatal(err)
		}
		statuses[revision] = item.GetLabels()["status"]
	}
	return statuses
}

// same compares what two releases have decided.
func (w *world) same(when string, got, want map[string]any) {
	w.Helper()
	for _, path := range paths(got, want) {
		if got[path] != want[path] {
			w.Errorf("%s: %s = %v, a fresh install has %v", when, path, got[path], want[path])
		}
	}
}

// onlyHooks are the objects that hooks have left.
func onlyHooks(objects map[string]*unstructured.Unstructured) map[string]*unstructured.Unstructured {
	out := maps.Clone(objects)
	for key := range withoutHooks(objects) {
		delete(out, key)
	}
	return out
}

// helmGoesOn lets Helm 3 upgrade the release and roll it back, and goes on with
// what it has made.
func (w *world) helmGoesOn(chart string) {
	w.Helper()
	w.helm("upgrade", "x", chart, "--no-hooks")
	w.helm("rollback", "x", "--no-hooks")
	w.ok("upgrade", "x", chart, "--no-hooks", "--wait=false")
}
