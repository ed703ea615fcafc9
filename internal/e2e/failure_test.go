package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// waitTimeout bounds waits for what takes a moment, on a busy machine.
const waitTimeout = time.Minute

// eventually waits until something is so.
func (w *world) eventually(what string, is func() bool) {
	w.Helper()
	w.cluster.Eventually(w.T, waitTimeout, what, func(context.Context) error {
		if is() {
			return nil
		}
		return errors.New("not yet")
	})
}

// TestAtomicUpgrade ends with 6 and the old state when the rollback works.
func TestAtomicUpgrade(t *testing.T) {
	w := newWorld(t)
	w.ok("install", "x", w.chart(configMap("a", "1")))
	fails := hookJob("fails", "post-upgrade", "before-hook-creation", true)
	r := w.exits(6, "upgrade", "x", w.chart(configMap("a", "2"), configMap("b", "1"), fails), "--atomic")
	w.says(r, "stderr", `rolled back`, `Job/`+w.ns+`/fails`)
	w.there("configmaps", map[string]bool{"a": true, "b": false})
	if got := field(w.must("configmaps", "a"), "data.key"); got != "1" {
		t.Errorf("ConfigMap/a has key = %v, want 1", got)
	}
	w.statuses("x", "superseded", "failed", "deployed")
}

// TestAtomicInstall ends with 6 and nothing left.
func TestAtomicInstall(t *testing.T) {
	w := newWorld(t)
	fails := hookJob("fails", "post-install", "before-hook-creation,hook-failed", true)
	r := w.exits(6, "install", "x", w.chart(configMap("a", "1"), fails), "--atomic")
	w.says(r, "stderr", `uninstalled`)
	w.nothingLeft()
}

// TestSuccessThatCannotBeRecorded tells that everything was deployed, and suggests no rollback of it.
func TestSuccessThatCannotBeRecorded(t *testing.T) {
	w := newWorld(t)
	w.ok("install", "x", w.chart(configMap("a", "1")))
	w.proxied().failing(func(_ int, c call) int {
		return when(c.method == http.MethodPut && strings.HasSuffix(c.path, "/sh.helm.release.v1.x.v2"), http.StatusForbidden)
	})
	r := w.exits(1, "upgrade", "x", w.chart(configMap("a", "2")))
	w.says(r, "stderr", "everything was deployed, but that couldn't be recorded: writing Secret/"+w.ns+"/sh.helm.release.v1.x.v2")
	if strings.Contains(r.err, "rollback") {
		t.Errorf("it suggests to roll back what works:\n%s", r)
	}
}

// TestAtomicAfterAFailedUninstall fails if a release that is up, because its uninstall failed before it deleted
// anything, counts as never deployed: the undo of a failed upgrade would delete all of it.
func TestAtomicAfterAFailedUninstall(t *testing.T) {
	w := newWorld(t)
	w.ok("install", "x", w.chart(configMap("a", "1"), hookJob("leave", "pre-delete", "hook-failed", true)))
	w.exits(1, "uninstall", "x")
	r := w.exits(6, "upgrade", "x", w.chart(configMap("a", "2"), hookJob("fails", "post-install,post-upgrade", "hook-failed", true)), "--install", "--atomic")
	w.says(r, "stderr", "upgrade of x", "has been rolled back")
	w.statuses("x", "failed", "failed", "deployed")
	if got := field(w.must("configmaps", "a"), "data.key"); got != "1" {
		t.Errorf("ConfigMap/a has key = %v, want 1:\n%s", got, r)
	}

	w = worldOf(t)
	w.helm("install", "x", w.chart(configMap("a", "1"), hookJob("leave", "pre-delete", "hook-failed", true)))
	w.helmExits(1, "uninstall", "x")
	w.exits(7, "upgrade", "x", w.chart(configMap("a", "2"), hookJob("fails", "post-install,post-upgrade", "hook-failed", true)), "--install", "--atomic")
	w.statuses("x", "uninstalling", "failed")
	w.must("configmaps", "a")

	w = worldOf(t)
	w.helm("install", "x", w.chart(configMap("a", "1"), hookJob("leave", "pre-delete", "hook-failed", true)))
	w.helmExits(1, "uninstall", "x")
	w.exits(1, "uninstall", "x")
	r = w.exits(6, "upgrade", "x", w.chart(configMap("a", "2"), hookJob("fails", "post-install,post-upgrade", "hook-failed", true)), "--install", "--atomic")
	w.says(r, "stderr", "upgrade of x", "has been rolled back")
	w.statuses("x", "failed", "failed", "deployed")
	w.must("configmaps", "a")
}

// TestAtomicRollbackFails ends with 7: the hook of the rollback fails too.
func TestAtomicRollbackFails(t *testing.T) {
	w := newWorld(t)
	w.ok("install", "x", w.chart(configMap("a", "1"), hookJob("back", "pre-rollback", "before-hook-creation", true)))
	fails := hookJob("fails", "post-upgrade", "before-hook-creation", true)
	r := w.exits(7, "upgrade", "x", w.chart(configMap("a", "2"), fails), "--atomic")
	w.says(r, "stderr", `fails`, `back`)
	w.statuses("x", "deployed", "failed", "failed")

	// The next release isn't stuck.
	w.ok("upgrade", "x", w.chart(configMap("a", "3")))
}

// TestNotReady fails a release whose pods don't get ready in time.
func TestNotReady(t *testing.T) {
	w := newWorld(t)
	never := deployment("d", "d", "  replicas: 1\n  progressDeadlineSeconds: 600")
	never = withAnnotation(never, `[{"state":{"running":{}}}]`)
	r := w.exits(1, "install", "x", w.chart(never), "--timeout", "5s")
	w.says(r, "stderr", `Deployment/`+w.ns+`/d`, `TIMED OUT`)
	w.statuses("x", "failed")
}

// withAnnotation gives the pods of a deployment what they go through.
func withAnnotation(manifest, steps string) string {
	return replaceOnce(manifest, "    metadata:\n      labels:", fmt.Sprintf("    metadata:\n      annotations: {sim.deployer/steps: '%s'}\n      labels:", steps))
}

// start runs deployer in the background until the release's first record is
// pending.
func (w *world) start(args ...string) (*exec.Cmd, func(error) result) {
	w.Helper()
	cmd, done := w.command(deployerBinary, args...)
	if err := cmd.Start(); err != nil {
		w.Fatalf("starting deployer: %v", err)
	}
	w.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, done
}

// endless is a chart whose post-install and post-upgrade hook never ends.
func (w *world) endless() string {
	return w.chart(configMap("a", "2"), endlessHook("endless", "post-install,post-upgrade"))
}

// waiting waits until the run has come to the endless hook.
func (w *world) waiting() {
	w.Helper()
	w.eventually("the hook runs", func() bool { return w.get("jobs", "endless") != nil })
}

// TestHooksOfAKilledRunAreDeleted fails if a hook that had finished when its run was killed stays
// for ever, though its policy is to delete it when it has succeeded.
func TestHooksOfAKilledRunAreDeleted(t *testing.T) {
	w := newWorld(t)
	w.ok("install", "x", w.chart(configMap("a", "1")))
	finished := hookJob("at-first", "post-upgrade", "before-hook-creation,hook-succeeded", false)
	cmd, done := w.start("upgrade", "x", w.chart(configMap("a", "2"), finished, endlessHook("endless", "post-upgrade")))
	w.waiting()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	done(cmd.Wait())
	w.must("jobs", "at-first")
	r := w.ok("upgrade", "x", w.chart(configMap("a", "2"), finished))
	w.says(r, "stderr", "hook .* finished in the killed run and is not run again")
	if w.get("jobs", "at-first") != nil {
		t.Errorf("the hook is left:\n%s", r)
	}
}

// TestDriftAfterAKilledRun fails if what a hook has made isn't missed because the hook had finished in a run that was killed.
func TestDriftAfterAKilledRun(t *testing.T) {
	w := newWorld(t)
	made := replaceOnce(configMap("made", "1"), "name: made", "name: made\n  annotations: {helm.sh/hook: pre-install}")
	chart := w.chart(configMap("a", "1"), made)
	killed := w.hold(applies("a"), "install", "x", chart).must()
	if err := killed.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed.rest()
	w.says(w.ok("upgrade", "x", chart, "--install"), "stderr", "hook .* finished in the killed run and is not run again")
	w.ok("plan", "--drift", "x")
	w.patch("configmaps", "made", "somebody", `{"data":{"key":"other"}}`)
	w.says(w.exits(2, "plan", "--drift", "x"), "stdout", "ConfigMap/"+w.ns+"/made")
}

// TestRollbackOfADefinitionThatMoved fails if nobody gets back from a chart that moves a definition from
// its templates to crds/, where objects carry no ownership.
func TestRollbackOfADefinitionThatMoved(t *testing.T) {
	w := newWorld(t)
	definition := strings.ReplaceAll(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.GROUP}
spec: {group: GROUP, scope: Namespaced, names: {plural: things, singular: thing, kind: Thing}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}
`, "GROUP", w.ns+".example.com")
	before := w.chart(configMap("a", "1"), definition)
	moved := w.chart(configMap("a", "2"), hookJob("fails", "post-upgrade", "before-hook-creation", true))
	if err := os.Mkdir(filepath.Join(moved, "crds"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(moved, "crds", "things.yaml"), []byte(definition), 0o666); err != nil {
		t.Fatal(err)
	}
	w.ok("install", "x", before)
	w.exits(1, "upgrade", "x", moved)
	w.ok("rollback", "x", "1")
	w.ok("upgrade", "x", before)
	w.exits(6, "upgrade", "x", moved, "--atomic")
	w.ok("upgrade", "x", before)
	w.ok("uninstall", "x")
}

// TestAtomicLeavesConflictsToOthers fails if the conflict for which a run failed makes its undo fail.
func TestAtomicLeavesConflictsToOthers(t *testing.T) {
	w := newWorld(t)
	charts := func(value string) string {
		late := strings.Replace(configMap("late", value), "  name: late\n", "  name: late\n  annotations: {deployer.io/weight: \"10\"}\n", 1)
		return w.chart(configMap("a", value), late)
	}
	w.ok("install", "x", charts("1"))
	edit := func() { w.patch("configmaps", "late", "somebody", `{"data":{"key":"theirs"}}`) }
	w.proxied().arm(&fate{at: writes("PATCH", "/configmaps/a"), when: before, do: edit})
	r := w.exits(6, "upgrade", "x", charts("2"), "--conflicts", "fail", "--atomic")
	w.says(r, "stderr", "ConfigMap/"+w.ns+"/late", "somebody")
	for name, want := range map[string]string{"a": "1", "late": "theirs"} {
		if got := field(w.must("configmaps", name), "data.key"); got != want {
			t.Errorf("ConfigMap/%s has key = %v, want %s\n%s", name, got, want, r)
		}
	}
}

// TestChartWithItsOwnNamespace fails if a chart that has its own namespace among its objects can be
// planned with --create-namespace, but not installed.
func TestChartWithItsOwnNamespace(t *testing.T) {
	w := newWorld(t)
	namespace := w.ns + "-own"
	chart := w.chart("apiVersion: v1\nkind: Namespace\nmetadata: {name: {{ .Release.Namespace }}, labels: {team: web}}\n", configMap("a", "1"))
	t.Cleanup(func() {
		_ = w.cluster.Client().CoreV1().Namespaces().Delete(context.Background(), namespace, metav1.DeleteOptions{})
	})
	flags := []string{"x", chart, "-n", namespace, "--create-namespace"}
	w.says(w.ok(append([]string{"plan"}, flags...)...), "stdout", "2 to create")
	w.ok(append([]string{"install"}, flags...)...)
	live, err := w.cluster.Client().CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
	if err != nil || live.Labels["team"] != "web" {
		t.Errorf("%v, labels %v", err, live.Labels)
	}
	w.ok("upgrade", "x", chart, "-n", namespace)
	w.ok("uninstall", "x", "-n", namespace)
}

// TestTwoAtOnce: the second run is refused with 5, or waits when told to.
func TestTwoAtOnce(t *testing.T) {
	w := newWorld(t)
	w.ok("install", "x", w.chart(configMap("a", "1")))
	first, done := w.start("upgrade", "x", w.endless())
	w.waiting()
	r := w.exits(5, "upgrade", "x", w.chart(configMap("a", "3")))
	holder := `.*, pid \d+ \(upgrade to revision 2\) since 20\d\d-`
	w.says(r, "stderr", `another operation`, `release `+w.ns+`/x is held by `+holder, `--lock-timeout`)
	w.statuses("x", "deployed", "pending-upgrade")

	second, secondDone := w.start("upgrade", "x", w.chart(configMap("a", "4")), "--lock-timeout", "60s")
	third := w.exits(5, "upgrade", "x", w.chart(configMap("a", "3")))
	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if r := done(first.Wait()); r.code != 143 {
		t.Errorf("want exit code 143:\n%s", r)
	}
	if r := secondDone(second.Wait()); r.code != 0 {
		t.Errorf("the run that waited: want exit code 0:\n%s\nthe one that didn't:\n%s", r, third)
	} else {
		w.says(r, "stderr", `waiting for another run on release x: `+holder)
	}
	w.statuses("x", "superseded", "failed", "deployed")
	if got := field(w.must("configmaps", "a"), "data.key"); got != "4" {
		t.Errorf("ConfigMap/a has key = %v, want 4", got)
	}
}

// TestManyAtOnce starts ten upgrades together: one works at a time. Those that
// may wait all get their turn, the others end with 0 or with 5 and say who is at
// work. The revisions have no gap, and what is there is one revision's.
func TestManyAtOnce(t *testing.T) {
	w := newWorld(t)
	release := func(value string) string {
		return w.chart(configMap("a", value), configMap("b", value), configMap("c", value))
	}
	w.ok("install", "x", release("first"))
	const runs = 10
	results := make(chan result, runs)
	for i := range runs {
		args := []string{"upgrade", "x", release(fmt.Sprint("run ", i)), "--history-max", "0"} // all ten may get their turn
		if i%2 == 0 {
			args = append(args, "--lock-timeout", "2m")
		}
		go func() { results <- w.try(deployerBinary, args...) }()
	}
	want := []string{}
	for range runs {
		switch r := <-results; {
		case r.code == 0:
			want = append(want, "superseded")
		case r.code == 5 && !strings.Contains(r.line, "--lock-timeout"):
			w.says(r, "stderr", `release `+w.ns+`/x is held by .*pid \d+ \(upgrade to revision \d+\) since 20|was changed`)
		default:
			t.Errorf("want exit code 0, or 5 without --lock-timeout:\n%s", r)
		}
	}
	w.statuses("x", append(want, "deployed")...)
	if w.get("leases", "deployer-x") != nil {
		t.Error("a Lease is left")
	}
	value := field(w.must("configmaps", "a"), "data.key")
	w.says(w.ok("get", "manifest", "x"), "stdout", fmt.Sprintf(`key: %q`, value))
	for _, name := range []string{"b", "c"} {
		if got := field(w.must("configmaps", name), "data.key"); got != value {
			t.Errorf("ConfigMap/%s is of %v, ConfigMap/a of %v", name, got, value)
		}
	}
}

// TestFlagsAnywhere puts flags before and after arguments and commands.
func TestFlagsAnywhere(t *testing.T) {
	w := newWorld(t)
	chart := w.chart("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {key: {{ .Values.key | quote }}}\n")
	for i, args := range [][]string{
		{"install", "x", chart, "--set", "key=0"},
		{"upgrade", "--set", "key=1", "x", chart},
		{"upgrade", "x", "--set=key=2", chart, "--wait"},
		{"-n", w.ns, "upgrade", "x", chart, "--set", "key=3"},
		{"upgrade", "-n" + w.ns, "-i", "x", chart, "--set", "key=4", "--wait=false", "--timeout=5m"},
	} {
		w.ok(args...)
		if got := field(w.must("configmaps", "a"), "data.key"); got != fmt.Sprint(i) {
			t.Errorf("deployer %v: key = %v, want %d", args, got, i)
		}
	}
}

// TestNamespaceThatGoes: a namespace that is being deleted takes nothing
// new, which is said at once, and nothing is left pending in it.
func TestNamespaceThatGoes(t *testing.T) {
	w := newWorld(t).beside() // the user must not go with the namespace
	w.ok("install", "old", w.chart(configMap("b", "1")))
	w.create("configmaps", "test", "{apiVersion: v1, kind: ConfigMap, metadata: {name: stays, finalizers: [test.example.com/stays]}}")
	// The namespace is deleted by the test's end too, which this would hold up.
	defer w.patch("configmaps", "stays", "test", `{"metadata":{"finalizers":null}}`)
	if err := w.in("namespaces").Delete(t.Context(), w.ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"install", "x"}, {"upgrade", "--install", "x", "--create-namespace"}} {
		r := w.exits(3, append(args, w.chart(configMap("a", "1")))...)
		w.says(r, "stderr", w.ns+`.* is being (terminated|deleted)`)
	}
}
