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
}

// deaths are the commands that change a release.
var deaths = map[string]death{
	"install": {
		killed: []string{"install", "x", "CHART1"},
		next:   [][]string{{"upgrade", "--install", "x", "CHART1"}, {"uninstall", "x", "--ignore-not-found"}, {"upgrade", "--install", "x", "CHART2"}},
		wants:  []string{"CHART1", "", "CHART2"},
	},
	"upgrade": {
		setup:  [][]string{{"install", "x", "CHART1"}},
		killed: []string{"upgrade", "x", "CHART2"},
		next:   [][]string{{"upgrade", "x", "CHART2"}, {"rollback", "x", "1"}, {"uninstall", "x"}},
		wants:  []string{"CHART2", "CHART1", ""},
	},
	"rollback": {
		setup:  [][]string{{"install", "x", "CHART1"}, {"upgrade", "x", "CHART2"}},
		killed: []string{"rollback", "x", "1"},
		next:   [][]string{{"rollback", "x", "1"}, {"upgrade", "x", "CHART2"}, {"uninstall", "x"}},
		wants:  []string{"CHART1", "CHART2", ""},
	},
	"uninstall": {
		setup:  [][]string{{"install", "x", "CHART1"}},
		killed: []string{"uninstall", "x"},
		next:   [][]string{{"uninstall", "x", "--ignore-not-found"}, {"upgrade", "--install", "x", "CHART2"}},
		wants:  []string{"", "CHART2"},
	},
}

// TestKilledAtEveryCall kills install, upgrade, rollback and uninstall of some
// twenty objects with hooks at each call to the API server, before it is sent
// and after it is committed but before the answer. The next run has to take over
// by itself: afterwards everything is as if there had been no killed run, and no
// hook has run twice (S113). Without DEPLOYER_TEST_LONG a sample is run.
func TestKilledAtEveryCall(t *testing.T) {
	charts := map[string]string{"CHART1": writeTwenty(t, 1), "CHART2": writeTwenty(t, 2)}
	fresh := freshInstalls(t, charts)
	for name, d := range deaths {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sweep{death: d, charts: charts, fresh: fresh}
			calls := s.count(t)
			t.Logf("%d calls, %d of them write", len(calls), len(slices.DeleteFunc(slices.Clone(calls), func(c call) bool { return !c.write() })))
			for _, p := range s.points(calls) {
				t.Run(fmt.Sprintf("%d %s %s", p.at, strings.Fields(string(p.when))[0], d.next[p.next][0]), func(t *testing.T) {
					t.Parallel()
					s.die(t, p)
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
		w := newSerialWorld(t)
		w.ok("install", "x", charts[name], "--no-hooks")
		fresh[name] = decided(withoutHooks(w.everything()), w.ns)
	}
	return fresh
}

// A point is where a program dies, and which of the next runs follows.
type point struct {
	at   int
	when moment
	next int
}

// sampleEvery is how many writes lie between two points of the sample.
const sampleEvery = 8

// points are all points to die at, each write that is committed with all that
// may follow; or a sample of the writes.
func (s *sweep) points(calls []call) []point {
	var all, sample []point
	writes := 0
	for i, c := range calls {
		at := i + 1
		if !c.write() {
			all = append(all, point{at, before, at % len(s.next)})
			continue
		}
		all = append(all, point{at, before, 0})
		for next := range s.next {
			all = append(all, point{at, after, next})
		}
		if writes++; writes%sampleEvery == 1 {
			sample = append(sample, point{at, after, len(sample) % len(s.next)})
		}
	}
	if os.Getenv(longEnv) != "" {
		return all
	}
	return append(sample, point{len(calls), before, 0})
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
	w := newSerialWorld(t)
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
	over := s.over(w)
	next := w.ok(s.filled(s.next[at.next])...)
	s.converged(w, at.next)
	if at.next == 0 && !over {
		for job, times := range p.made() {
			if times != 1 {
				t.Errorf("hook Job/%s was created %d times", job, times)
			}
		}
	}
	if want := s.wants[at.next]; want != "" && at.at%helmEvery == 0 {
		w.helmGoesOn(s.charts[want])
	}
	if t.Failed() {
		t.Logf("died at %v\n%s\nthe next run: %s\nwhat both wrote: %v", fatal[len(fatal)-1], killed, next, w.written(p))
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

// over says whether a command that died had recorded that it was done: the same
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
	r := w.struck(p, fate{at: nth(at.at), when: at.when, dies: true}, syscall.SIGKILL, args...)
	if r.code != 128+int(syscall.SIGKILL) && r.code != 0 {
		w.Fatalf("it wasn't killed, and failed:\n%s", r)
	}
	return r
}

// nth is the n-th call.
func nth(n int) func(int, call) bool { return func(i int, _ call) bool { return i == n } }

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
	if lease := w.get("leases", "deployer-"+name); lease != nil && there {
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

// helmEvery is at how many of the points Helm 3 goes on with the release.
const helmEvery = 10

// helmGoesOn lets Helm 3 read, upgrade and roll back the release.
func (w *world) helmGoesOn(chart string) {
	w.Helper()
	w.says(w.helm("list", "-a"), "stdout", `\nx\s`)
	w.helm("history", "x")
	w.helm("get", "all", "x")
	w.helm("upgrade", "x", chart)
	w.helm("rollback", "x")
	w.ok("upgrade", "x", chart)
}
