package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/internal/kubetest"
)

// An actor is one of two commands on the same release.
type actor struct {
	name    string
	args    []string // CHART is its own; PLAN a saved plan
	refused int      // exit code of one that doesn't fit what the other has made; 0: it always fits
	fails   bool     // its chart fails, and it goes back: exit code 6
}

// revises reports whether the command makes a revision.
func (a actor) revises() bool {
	return !slices.Contains([]string{"uninstall", "test", "recover"}, a.args[0])
}

// actors are all commands that take the lock of a release.
var actors = []actor{
	{name: "upgrade", args: []string{"upgrade", "x", "CHART"}, refused: 1},
	{name: "upgrade --install --atomic", args: []string{"upgrade", "x", "CHART", "--install", "--atomic"}},
	{name: "failing upgrade --install --atomic", args: []string{"upgrade", "x", "CHART", "--install", "--atomic"}, fails: true},
	{name: "install", args: []string{"install", "x", "CHART"}, refused: 1},
	{name: "rollback", args: []string{"rollback", "x"}, refused: 1},
	{name: "uninstall", args: []string{"uninstall", "x"}, refused: 1},
	{name: "uninstall --keep-history", args: []string{"uninstall", "x", "--keep-history"}, refused: 1},
	{name: "apply", args: []string{"apply", "PLAN"}, refused: 4},
	{name: "test", args: []string{"test", "x"}, refused: 1},
	{name: "recover", args: []string{"recover", "x"}, refused: 1},
}

// busy is the exit code of a run that finds another at work.
const busy = 5

// A meeting is two commands of which the first is held at one of its calls to the
// API server until the second has ended, or stands in the queue.
type meeting struct {
	first, second actor
	call          int  // of the first
	waits         bool // the second waits for the lock
}

func (m meeting) String() string {
	waits := "at once"
	if m.waits {
		waits = "waiting"
	}
	return fmt.Sprintf("%s held at %d, %s %s", m.first.name, m.call, m.second.name, waits)
}

// meetingsSeed draws the sample. It is the same each time: what make test finds
// is found again. DEPLOYER_TEST_SEED gives another one.
const meetingsSeed = 13

// meetingsSampled is how many meetings there are in a sample.
const meetingsSampled = 16

// TestTwoAtOnceAtEveryCall lets two commands on one release meet: each of those
// that take its lock with each, the first held at each of its calls. Afterwards
// everything is as one of them left it after the other had ended, whichever was
// last. Without DEPLOYER_TEST_LONG a sample is run.
func TestTwoAtOnceAtEveryCall(t *testing.T) {
	t.Parallel()
	s := &stage{T: t, charts: map[string]string{}}
	for _, a := range actors {
		s.charts[a.name] = s.chart(a.name, a.fails)
	}
	for _, name := range []string{"before", "older"} {
		s.charts[name] = s.chart(name, false)
	}
	var all []meeting
	if os.Getenv(longEnv) == "" {
		all = s.sample(drawnFrom(t, meetingsSeed))
	} else {
		all = s.every()
	}
	for _, m := range all {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			s.meet(t, m)
		})
	}
}

// drawnFrom is a source of random numbers, the same each time unless the
// environment says another seed.
func drawnFrom(t *testing.T, seed uint64) *rand.Rand {
	t.Helper()
	if text := os.Getenv(kubetest.SeedVariable); text != "" {
		if _, err := fmt.Sscan(text, &seed); err != nil {
			t.Fatalf("%s: %v", kubetest.SeedVariable, err)
		}
	}
	return rand.New(rand.NewPCG(seed, 0))
}

// A stage is where meetings take place.
type stage struct {
	*testing.T
	charts map[string]string // by name of the actor
	counts sync.Map          // by name of the actor: how many calls it makes
}

// chart writes the chart of an actor: an object whose content is its own, one that
// all have, one that only it has, and a test.
func (s *stage) chart(name string, fails bool) string {
	own := "only-" + strings.NewReplacer(" ", "-", "--", "").Replace(name)
	w := &world{T: s.T}
	templates := []string{configMap("a", name), configMap("b", "1"), configMap(own, name), hookJob("test", "test", "hook-succeeded", false)}
	if fails {
		templates = append(templates, hookJob("fails", "post-upgrade,post-install", "hook-failed", true))
	}
	return w.chart(templates...)
}

// sample draws pairs, and where the first is held: in the first third of its
// calls, where it hasn't the lock yet, twice as often as anywhere.
func (s *stage) sample(r *rand.Rand) []meeting {
	var out []meeting
	for i := range meetingsSampled {
		m := meeting{first: actors[r.IntN(len(actors))], second: actors[r.IntN(len(actors))], waits: i%2 == 0}
		calls := s.count(m.first)
		if r.IntN(2) == 0 {
			calls = calls/3 + 1
		}
		m.call = 1 + r.IntN(calls)
		out = append(out, m)
	}
	return out
}

// every is each pair, at each call.
func (s *stage) every() []meeting {
	var out []meeting
	for _, first := range actors {
		for _, second := range actors {
			for call := range s.count(first) {
				for _, waits := range []bool{false, true} {
					out = append(out, meeting{first, second, call + 1, waits})
				}
			}
		}
	}
	return out
}

// count runs a command undisturbed and counts its calls.
func (s *stage) count(a actor) int {
	s.Helper()
	if n, ok := s.counts.Load(a.name); ok {
		return n.(int)
	}
	w := worldOf(s.T)
	plan := s.set(w, meeting{first: a, second: a})
	p := w.proxied()
	p.arm(nil)
	w.try(deployerBinary, s.line(a, plan)...)
	n := len(p.seen())
	s.counts.Store(a.name, n)
	return n
}

// set prepares a release for two actors, and the plan that is applied, if one is.
func (s *stage) set(w *world, m meeting) (plan string) {
	w.Helper()
	has := func(name string) bool { return m.first.name == name || m.second.name == name }
	if m.first.name != "install" {
		verb := "install"
		if has("rollback") {
			w.ok("install", "x", s.charts["older"], "--wait=false")
			verb = "upgrade"
		}
		w.ok(verb, "x", s.charts["before"], "--wait=false")
	}
	if has("apply") {
		plan = filepath.Join(w.TempDir(), "x.plan")
		w.ok("plan", "x", s.charts["apply"], "--description", "by apply", "--out", plan)
	}
	return plan
}

// line is the command line of an actor.
func (s *stage) line(a actor, plan string) []string {
	out := slices.Clone(a.args)
	for i, arg := range out {
		switch arg {
		case "CHART":
			out[i] = s.charts[a.name]
		case "PLAN":
			out[i] = plan
		}
	}
	if a.revises() && a.name != "apply" {
		out = append(out, "--description", "by "+a.name)
	}
	return out
}

// meet lets the two meet, and checks what is then.
func (s *stage) meet(t *testing.T, m meeting) {
	w := worldOf(t)
	plan := s.set(w, m)
	stranger := w.create("configmaps", "kubectl-create", "{apiVersion: v1, kind: ConfigMap, metadata: {name: stranger}, data: {key: theirs}}")
	first := w.hold(func(n int, _ call) bool { return n == m.call }, s.line(m.first, plan)...)
	held := first.arrived()
	var r2 result
	if line := s.line(m.second, plan); m.waits {
		second := w.hold(queues(), append(line, "--lock-timeout", "2m")...)
		second.arrived() // in the queue, or it has ended
		first.pass()
		r2 = second.rest()
	} else {
		r2 = w.try(deployerBinary, line...)
	}
	r1 := first.rest()

	w.ended(m.first, r1, m.second, false)
	w.ended(m.second, r2, m.first, !m.waits && held)
	w.settledWell()
	if now := w.must("configmaps", "stranger"); now.GetResourceVersion() != stranger.GetResourceVersion() {
		w.Errorf("the object of a stranger was changed: %v", now.Object)
	}
	if t.Failed() {
		t.Logf("first: %s\nsecond: %s\nthe calls of the first: %v", r1, r2, first.proxy.seen())
	}
}

// ended checks how a command ended, and that the history agrees.
func (w *world) ended(a actor, r result, other actor, mayBeBusy bool) {
	w.Helper()
	done := 0
	if a.fails {
		done = 6
	}
	comesOrGoes := other.name == "install" || strings.HasPrefix(other.name, "uninstall")
	fits := a.refused == 0 || !comesOrGoes && a.name != "install" && a.name != "apply"
	if r.code != done && (fits || r.code != a.refused) && !(mayBeBusy && r.code == busy) {
		w.Errorf("%s: exit code %d:\n%s", a.name, r.code, r)
	}
	if !a.revises() || a.name == other.name || strings.HasPrefix(other.name, "uninstall") {
		return // it leaves no words of its own, or they may be gone
	}
	said := 0
	for _, rec := range w.records() {
		if rec.description == "by "+a.name {
			said++
		}
	}
	if (r.code == 0) != (said == 1) {
		w.Errorf("%s ended with %d and is in the history %d times:\n%s", a.name, r.code, said, r)
	}
}

// A past is what a test needs to know of a revision.
type past struct {
	status, description string
	objects             []*unstructured.Unstructured
}

// records reads all revisions of the release, by revision.
func (w *world) records() map[int]past {
	w.Helper()
	list, err := w.in("secrets").List(w.Context(), metav1.ListOptions{LabelSelector: "owner=helm,name=x"})
	if err != nil {
		w.Fatal(err)
	}
	out := map[int]past{}
	for i := range list.Items {
		var rec struct {
			Version  int
			Manifest string
			Info     struct{ Status, Description string }
		}
		if err := json.Unmarshal([]byte(w.unpacked(list.Items[i].GetName())), &rec); err != nil {
			w.Fatal(err)
		}
		p := past{status: rec.Info.Status, description: rec.Info.Description}
		for _, text := range strings.Split(rec.Manifest, "---\n") {
			if strings.Contains(text, "kind:") {
				p.objects = append(p.objects, kubetest.Object(w.T, text))
			}
		}
		out[rec.Version] = p
	}
	return out
}

// settledWell checks that the history has no gap, nothing unfinished and one
// deployed revision, or none when it was uninstalled; that nobody holds the
// release; and that there are the objects of the deployed revision, and no others.
func (w *world) settledWell() {
	w.Helper()
	records := w.records()
	want, deployed := map[string]string{"stranger": "theirs"}, 0
	latest := 0
	for revision := range records {
		latest = max(latest, revision)
	}
	for revision, rec := range records {
		switch rec.status {
		case "deployed":
			deployed++
			for _, obj := range rec.objects {
				want[obj.GetName()], _ = field(obj, "data.key").(string)
			}
		case "superseded", "failed", "uninstalled":
		default:
			w.Errorf("revision %d is left %s", revision, rec.status)
		}
	}
	if len(records) != latest {
		w.Errorf("the history has a gap: %v", w.revisions("x"))
	}
	if expected := len(records) > 0 && records[latest].status != "uninstalled"; expected != (deployed == 1) || deployed > 1 {
		w.Errorf("%d revisions are deployed: %v", deployed, w.revisions("x"))
	}
	got := map[string]string{}
	for key, obj := range w.everything() {
		name, _ := strings.CutPrefix(key, "ConfigMap/")
		got[name], _ = field(obj, "data.key").(string)
	}
	for _, name := range paths(want, got) {
		if got[name] != want[name] {
			w.Errorf("%s has %q, the last successful record says %q", name, got[name], want[name])
		}
	}
	if lease := w.get("leases", "deployer-x"); lease != nil {
		w.Errorf("the Lease is left: %v", lease.Object)
	}
}

// TestHelmRollbackDuringARun fails if a run changes more objects, and ends as deployed, after `helm
// rollback` has recorded a later revision: that command looks neither at the Lease nor at pending revisions.
func TestHelmRollbackDuringARun(t *testing.T) {
	w := newWorld(t)
	before := w.chart(deployment("d", "d", "  replicas: 1"))
	later := replaceOnce(configMap("later", "1"), "  name: later", "  name: later\n  annotations: {deployer.io/depends-on: Deployment/d}")
	after := w.chart(deployment("d", "d", "  replicas: 2"), later)
	w.ok("install", "x", before)
	h := w.hold(func(_ int, c call) bool {
		return c.method == "GET" && strings.Contains(c.path, "/deployments") && strings.Contains(c.path, "watch=")
	}, "upgrade", "x", after).must()
	w.helm("rollback", "x", "1")
	r := h.rest()
	if r.code != 1 {
		t.Errorf("want exit code 1:\n%s", r)
	}
	w.says(r, "stderr", "another tool recorded revision 3, which is (deployed|pending-rollback), during the run")
	if strings.Contains(r.err, "roll back") {
		t.Errorf("it suggests to undo what the other tool does:\n%s", r)
	}
	if w.get("configmaps", "later") != nil {
		t.Error("the run has changed an object after it was overtaken")
	}
	w.statuses("x", "superseded", "failed", "deployed")
	w.ok("upgrade", "x", before)
	w.statuses("x", "superseded", "failed", "superseded", "deployed")
}
