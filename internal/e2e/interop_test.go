package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/testcharts"
)

// chartsToShare are charts that both programs deploy in turn, beside the public ones. None makes objects
// outside of its namespace whose names it doesn't derive from the release's.
var chartsToShare = []string{"web", "everything", "subcharts", "library", "schema", "rename"}

// unlessVolumes is the flag that says whether to wait. The development cluster
// provides no volumes: claims stay pending.
func unlessVolumes(chart string) string {
	if chart == "everything" || chart == "subcharts" {
		return "--wait=false"
	}
	return "--wait"
}

// tellingQuestions are those whose answers together have all that a record says; moreQuestions ask for it in other forms.
var (
	tellingQuestions = []string{"list -o json", "history NAME -o json", "status NAME -o json", "get all NAME"}
	moreQuestions    = []string{
		"list", "history NAME", "status NAME", "status NAME --show-desc", "get values NAME -o json", "get values NAME -a -o json",
		"get values NAME", "get manifest NAME", "get hooks NAME", "get notes NAME", "get metadata NAME -o json", "get metadata NAME",
		"list -q", "list -a -o yaml", "history NAME --max 1", "get manifest NAME --revision 1",
	}
)

// sameAnswers asks both programs the same about a release. What they print has
// to be the same, JSON field by field.
func (w *world) sameAnswers(name, when string, more ...string) {
	w.Helper()
	for _, question := range append(slices.Clone(tellingQuestions), more...) {
		args := strings.Fields(strings.ReplaceAll(question, "NAME", name))
		theirs, ours := w.helm(args...), w.ok(args...)
		if strings.HasSuffix(question, "json") {
			w.sameJSON(when+": "+question, theirs.out, ours.out)
		} else if theirs.out != ours.out {
			w.Errorf("%s: %s\n%s", when, question, difference(theirs.out, ours.out))
		}
	}
}

// sameJSON compares two documents field by field.
func (w *world) sameJSON(what, theirs, ours string) {
	w.Helper()
	a, b := flatJSON(w.T, theirs), flatJSON(w.T, ours)
	// What Helm 4 says and Helm 3 doesn't.
	delete(b, ".apply_method")
	delete(b, ".applyMethod")
	for _, path := range paths(a, b) {
		if !reflect.DeepEqual(a[path], b[path]) {
			w.Errorf("%s: %s is %#v with helm, %#v with deployer", what, path, a[path], b[path])
		}
	}
}

// flatJSON maps the paths of a document to the values there.
func flatJSON(t testing.TB, text string) map[string]any {
	t.Helper()
	var doc any
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, text)
	}
	out := map[string]any{}
	flatten("", doc, out)
	return out
}

func flatten(path string, value any, into map[string]any) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			flatten(path+"."+key, inner, into)
		}
		if len(v) == 0 {
			into[path] = "{}"
		}
	case []any:
		for i, inner := range v {
			flatten(fmt.Sprintf("%s[%d]", path, i), inner, into)
		}
		if len(v) == 0 {
			into[path] = "[]"
		}
	default:
		into[path] = v
	}
}

func paths[T any](a, b map[string]T) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// difference shows the first line in which two texts differ.
func difference(theirs, ours string) string {
	a, b := strings.Split(theirs, "\n"), strings.Split(ours, "\n")
	for i := 0; i < len(a) || i < len(b); i++ {
		x, y := "(end)", "(end)"
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			return fmt.Sprintf("line %d\n  helm:     %q\n  deployer: %q", i+1, x, y)
		}
	}
	return "no difference"
}

// TestContinuesHelmReleases deploys with Helm 3 and goes on with deployer and
// Helm in turn. The first release of deployer changes no object.
func TestContinuesHelmReleases(t *testing.T) {
	t.Parallel()
	for _, chartName := range chartsToShare {
		t.Run(chartName, func(t *testing.T) {
			w := newWorld(t)
			chart, name := testcharts.Dir(t, chartName), w.unique()
			w.helm("install", name, chart)
			before := generations(w.everything())
			w.sameAnswers(name, "installed by helm")

			plan := w.ok("plan", name, chart, "-o", "json")
			w.noChanges(plan)
			w.ok("upgrade", name, chart, unlessVolumes(chartName))
			w.unchanged("the first release of deployer", before, generations(withoutHooks(w.everything())))
			w.sameAnswers(name, "upgraded by deployer")

			w.helm("upgrade", name, chart)
			w.unchanged("Helm's release after it", before, generations(withoutHooks(w.everything())))
			w.ok("rollback", name, "1", unlessVolumes(chartName))
			w.unchanged("deployer's rollback", before, generations(withoutHooks(w.everything())))
			w.sameAnswers(name, "rolled back by deployer")
			w.statuses(name, "superseded", "superseded", "superseded", "deployed")

			w.ok("uninstall", name)
			w.nothingLeft(hooksLeft(chartName)...)
		})
	}
}

// TestHelmContinuesReleases deploys with deployer and goes on with Helm 3.
func TestHelmContinuesReleases(t *testing.T) {
	t.Parallel()
	for _, chartName := range chartsToShare {
		t.Run(chartName, func(t *testing.T) {
			w := newWorld(t)
			chart, name := testcharts.Dir(t, chartName), w.unique()
			w.ok("install", name, chart, unlessVolumes(chartName))
			before := generations(withoutHooks(w.everything()))
			w.sameAnswers(name, "installed by deployer")

			w.helm("upgrade", name, chart)
			w.unchanged("Helm's upgrade", before, generations(withoutHooks(w.everything())))
			w.sameAnswers(name, "upgraded by helm")

			w.helm("rollback", name, "1")
			w.unchanged("Helm's rollback", before, generations(withoutHooks(w.everything())))
			w.sameAnswers(name, "rolled back by helm")

			w.ok("upgrade", name, chart, unlessVolumes(chartName))
			w.unchanged("deployer's upgrade after it", before, generations(withoutHooks(w.everything())))
			w.helm("uninstall", name)
			w.nothingLeft(hooksLeft(chartName)...)
		})
	}
}

// TestHooksInTurn lets both programs run hooks of one release: Helm's install,
// deployer's upgrade, Helm's rollback, deployer's uninstall.
func TestHooksInTurn(t *testing.T) {
	w := newWorld(t)
	chart := testcharts.Dir(t, "hooks")
	w.helm("install", "x", chart)
	w.sameAnswers("x", "installed by helm", moreQuestions...)
	w.ok("upgrade", "x", chart)
	w.sameAnswers("x", "upgraded by deployer", moreQuestions...)
	w.there("jobs", map[string]bool{"x-pre-upgrade": false, "x-post-upgrade": true, "x-pre-install-first": true})
	w.helm("rollback", "x", "1")
	w.sameAnswers("x", "rolled back by helm", moreQuestions...)
	w.there("jobs", map[string]bool{"x-pre-rollback": true, "x-post-rollback": true})
	w.ok("uninstall", "x")
	w.there("jobs", map[string]bool{"x-pre-delete": true, "x-post-delete": false})
	if cm := w.get("configmaps", "x-hooks"); cm != nil {
		t.Errorf("ConfigMap/x-hooks is left")
	}
}

// TestHelmUninstallsWhatFailed lets Helm remove a release that failed with
// deployer, and deployer one that failed with Helm.
func TestHelmUninstallsWhatFailed(t *testing.T) {
	w := newWorld(t)
	chart := testcharts.Dir(t, "rename")
	for name, programs := range map[string][2]func(int, ...string) result{
		"by helm": {w.exits, w.helmExits}, "by deployer": {w.helmExits, w.exits},
	} {
		first, second := programs[0], programs[1]
		first(0, "install", "app", chart)
		first(1, "upgrade", "app", chart, "--set", "containers={backend}", "--set", "hook.fail=true")
		w.statuses("app", "deployed", "failed")
		second(0, "uninstall", "app")
		w.Log("removed", name)
		w.nothingLeft("Job/migrate")
	}
}

// TestHookWithoutName: Helm records a hook that the API server would never take,
// and nobody notices before it runs. It is in nobody's way, by either program.
func TestHookWithoutName(t *testing.T) {
	w := newWorld(t)
	nameless := w.chart(configMap("a", "1"), "apiVersion: v1\nkind: Pod\nmetadata: {annotations: {helm.sh/hook: test}}\n")
	w.helm("install", "x", nameless)
	w.ok("plan", "--drift", "x")
	w.says(w.ok("upgrade", "x", nameless), "stderr", `warn .*Pod has no metadata.name; this hook will fail when it runs`)
	w.ok("upgrade", "x", w.chart(configMap("a", "2")))
	w.helm("upgrade", "x", nameless)
	w.says(w.exits(1, "test", "x"), "stderr", `Pod has no metadata.name`)
	w.ok("apply", w.saved("x", nameless), nameless)
	w.ok("apply", w.saved("--rollback", "x", "1"))
	w.ok("apply", w.saved("--uninstall", "x"))
	w.nothingLeft()
}

// TestHookWithGeneratedName: a hook may leave its name to the server. Its
// deletion is by the name that it got.
func TestHookWithGeneratedName(t *testing.T) {
	w := newWorld(t)
	generated := func(from string) string { return strings.Replace(from, "name: hook", "generateName: x-", 1) }
	chart := w.chart(configMap("a", "1"), generated(hookJob("hook", "post-install,post-upgrade", "hook-succeeded", false)),
		generated(hookJob("hook", "post-upgrade", "hook-succeeded", false)))
	w.says(w.ok("plan", "x", chart), "stdout", `> Job/`+w.ns+`/x-\*`)
	w.says(w.ok("install", "x", chart), "stderr", `hook +Job/`+w.ns+`/x-\* succeeded`)
	w.ok("upgrade", "x", chart)
	w.ok("uninstall", "x")
	w.nothingLeft()
}

// TestDroppedHook fails if the Job of a hook that the chart doesn't have any more stays, by its name or by a generated one. It stays
// while the chart has the hook.
func TestDroppedHook(t *testing.T) {
	w := newWorld(t)
	work := hookJob("work", "post-install,post-upgrade", "before-hook-creation", false)
	generated := strings.Replace(work, "name: work", "generateName: x-", 1)
	jobs := func(want int) {
		t.Helper()
		list, err := w.in("jobs").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != want {
			t.Errorf("%d Jobs, want %d (%v)", len(list.Items), want, err)
		}
	}
	chart := w.chart(configMap("a", "1"), work, generated)
	w.ok("install", "x", chart)
	w.ok("upgrade", "x", chart)
	jobs(3) // work, and one of each run
	w.says(w.ok("upgrade", "x", w.chart(configMap("a", "1"))), "stderr", `Job/`+w.ns+`/work`, `Job/`+w.ns+`/x-\w{5}`)
	jobs(0)
	w.ok("upgrade", "x", chart)
	w.ok("uninstall", "x")
	w.nothingLeft()
}

// noChanges checks that a plan changes no object; hooks may run.
func (w *world) noChanges(plan result) {
	w.Helper()
	for path, value := range flatJSON(w.T, plan.out) {
		if strings.HasSuffix(path, ".action") && value != "unchanged" && value != "keep" && value != "hook" {
			w.Errorf("the plan has %s = %v:\n%s", path, value, plan)
			return
		}
	}
}

// publicChart is one of the charts that are shared between the rooms of the
// project; without them the test is skipped.
func publicChart(t testing.TB, name string) string {
	t.Helper()
	return filepath.Join(publicCharts(t), name)
}

// TestHelmUpgradesAndRollsBackInBetween: Helm copies the
// record of a revision of ours, and what that one remembers of the objects isn't
// true any more.
func TestHelmUpgradesAndRollsBackInBetween(t *testing.T) {
	w := newWorld(t)
	ours, theirs := w.chart(configMap("a", "1"), deployment("d", "x", "  replicas: 0")), w.chart(configMap("a", "2"), deployment("d", "x", "  replicas: 1"))
	w.ok("install", "x", ours, "--wait=false")
	w.helm("upgrade", "x", theirs)
	w.patch("configmaps", "a", "kubectl-edit", `{"data":{"key":"3"}}`)
	w.helm("rollback", "x", "1")
	w.patch("deployments", "d", "kubectl-edit", `{"spec":{"replicas":2}}`)
	w.patch("configmaps", "a", "kubectl-edit", `{"data":{"key":"4"}}`)
	w.ok("upgrade", "x", ours, "--wait=false")
	if key, replicas := field(w.must("configmaps", "a"), "data.key"), field(w.must("deployments", "d"), "spec.replicas"); key != "1" || replicas != int64(0) {
		t.Errorf("key = %v, replicas = %v; want 1, 0", key, replicas)
	}
	for kind, name := range map[string]string{"configmaps": "a", "deployments": "d"} {
		for _, e := range w.must(kind, name).GetManagedFields() {
			if e.Manager == "helm" && e.Operation != "Apply" {
				t.Errorf("%s/%s is still managed by helm's %s", kind, name, e.Operation)
			}
		}
	}
	mark := w.mark()
	w.ok("upgrade", "x", ours, "--wait=false")
	if writes := w.writes(mark); len(writes) > 0 {
		t.Errorf("with nothing to do, objects were written: %v", writes)
	}
}

// TestAfterHelmForce: what helm upgrade --force has written by PUT becomes
// the release's, and what the chart drops goes.
func TestAfterHelmForce(t *testing.T) {
	w := newWorld(t)
	two := replaceOnce(configMap("a", "1"), "data:\n", "data:\n  other: x\n")
	w.helm("install", "x", w.chart(configMap("a", "1"), deployment("d", "x", "  replicas: 0")))
	w.helm("upgrade", "x", "--force", w.chart(two, deployment("d", "x", "  replicas: 0\n  minReadySeconds: 3")))
	before := generations(w.everything())
	w.ok("upgrade", "x", w.chart(two, deployment("d", "x", "  replicas: 0\n  minReadySeconds: 3")), "--wait=false")
	w.unchanged("the first release of deployer", before, generations(w.everything()))
	w.ok("upgrade", "x", w.chart(configMap("a", "1"), deployment("d", "x", "  replicas: 0")), "--wait=false")
	if a, d := w.must("configmaps", "a"), w.must("deployments", "d"); field(a, "data.other") != nil || field(d, "spec.minReadySeconds") != nil {
		t.Errorf("what was dropped stayed: %v, %v", a.Object["data"], d.Object["spec"])
	}
}
