package e2e

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// hookAnnotation marks the objects of hooks.
const hookAnnotation = "helm.sh/hook"

// withoutHooks leaves out what hooks made: it is new in each release.
func withoutHooks(objects map[string]*unstructured.Unstructured) map[string]*unstructured.Unstructured {
	out := map[string]*unstructured.Unstructured{}
	for key, obj := range objects {
		if _, ok := obj.GetAnnotations()[hookAnnotation]; !ok {
			out[key] = obj
		}
	}
	return out
}

// hooksLeft are the hooks of charts that stay after an uninstall, as with Helm:
// their policy doesn't delete them.
func hooksLeft(chart string) []string {
	if chart == "rename" {
		return []string{"Job/migrate"}
	}
	return nil
}

// TestHooksOfOneName is hooks that have one name: each is deleted before the next one, as with Helm.
func TestHooksOfOneName(t *testing.T) {
	w := newWorld(t)
	chart := w.chart(configMap("a", "1"),
		hookJob("once", "pre-install,pre-upgrade", "before-hook-creation", false)+"---\n"+
			hookJob("once", "post-install,post-upgrade", "before-hook-creation,hook-succeeded", false))
	w.helm("install", "y", chart)
	w.helm("uninstall", "y")
	w.ok("apply", w.saved("--install", "x", chart))
	w.there("jobs", map[string]bool{"once": false})
	w.says(w.ok("upgrade", "x", chart), "stderr", `hook .*once succeeded(?s:.*)hook .*once succeeded`)
	w.says(w.ok("plan", "x", chart, "-o", "json"), "stdout", `"helm.sh/hook": ?"pre-install,pre-upgrade"(?s:.*)"helm.sh/hook": ?"post-install,post-upgrade"`)
}

// TestHooksInAList fails if a hook that is a list is called List/NAMESPACE/, or if its delete policy
// isn't that of its objects, so that a claim that the policy keeps was deleted. Both programs make its objects.
func TestHooksInAList(t *testing.T) {
	w := newWorld(t)
	list := func(name, policy string, items ...string) string {
		out := "apiVersion: v1\nkind: List\nmetadata:\n  name: " + name + "\n  annotations:\n    helm.sh/hook: post-install,post-upgrade\n    helm.sh/hook-delete-policy: " + policy + "\nitems:\n"
		for _, item := range items {
			out += "- " + strings.ReplaceAll(strings.TrimRight(item, "\n"), "\n", "\n  ") + "\n"
		}
		return out
	}
	work := job("work", "example.com/a: b", `[{"phase":"Succeeded","state":{"terminated":{"exitCode":0,"reason":"Completed"}}}]`, "r/x:1")
	claim := "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
	chart := w.chart(configMap("a", "1"), list(`""`, "hook-succeeded", work, configMap("b", "1")))
	w.helm("install", "h", chart)
	w.there("jobs", map[string]bool{"work": false})
	w.helm("uninstall", "h")

	plan := w.ok("plan", "x", chart)
	w.says(plan, "stdout", `> Job/`+w.ns+`/work +post-install hook, deleted by hook-succeeded`, `> ConfigMap/`+w.ns+`/b +post-install hook, deleted by hook-succeeded`, "; 2 hooks")
	run := w.ok("install", "x", chart)
	w.says(run, "stderr", `hook +Job/`+w.ns+`/work succeeded`, `hook +ConfigMap/`+w.ns+`/b succeeded`)
	events := w.ok("upgrade", "x", chart, "-o", "json")
	w.says(events, "stdout", `"event":"hook_ran".*"object":"Job/`+w.ns+`/work"`, `"event":"hook_ran".*"object":"ConfigMap/`+w.ns+`/b"`)
	for _, r := range []result{plan, run, events} {
		if strings.Contains(r.out+r.err, "List/") {
			t.Errorf("a List is named: %s", r)
		}
	}
	w.there("jobs", map[string]bool{"work": false})
	w.there("configmaps", map[string]bool{"b": false})

	// What an item says itself isn't read, as in Helm.
	annotated := strings.Replace(claim, "{name: data}", "{name: more, annotations: {helm.sh/hook: post-upgrade}}", 1)
	keeps := w.chart(configMap("a", "1"), list("all", "hook-failed", annotated, claim))
	w.ok("upgrade", "x", keeps)
	uid, more := w.must("persistentvolumeclaims", "data").GetUID(), w.must("persistentvolumeclaims", "more").GetUID()
	w.says(w.exits(3, "upgrade", "x", keeps), "stderr", "may hold data, and the hook's delete policy keeps it")
	if w.must("persistentvolumeclaims", "data").GetUID() != uid || w.must("persistentvolumeclaims", "more").GetUID() != more {
		t.Error("the claim was deleted with its data")
	}
}

// TestFailingRollback: the rollback has failed, and nothing is stuck. It
// can be run again.
func TestFailingRollback(t *testing.T) {
	t.Parallel()
	fails := func(event string) string { return hookJob("back", event, "before-hook-creation", true) }
	never := job("work", "example.com/x: never", `[{"state":{"running":{}}}]`, "r/x:1")
	for name, c := range map[string]struct {
		first   []string // templates of the revision that is gone back to
		refused bool     // what has been planned is refused when it is applied
		flags   []string
		again   []string // flags with which it works
	}{
		"pre-rollback hook":  {first: []string{fails("pre-rollback")}, again: []string{"--no-hooks"}},
		"post-rollback hook": {first: []string{fails("post-rollback")}, again: []string{"--no-hooks"}},
		"apply":              {refused: true, again: []string{"--allow-recreate"}},
		"wait":               {first: []string{never}, flags: []string{"--timeout=3s"}, again: []string{"--wait=false"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ok("install", "x", w.chart(append(c.first, configMap("a", "1"))...), "--wait=false")
			w.ok("upgrade", "x", w.chart(configMap("a", "2")))
			if c.refused {
				w.proxied().arm(&fate{at: writes("PATCH", "/configmaps/a"), when: before, do: func() {
					w.patch("configmaps", "a", "somebody", `{"immutable":true}`)
				}})
			}
			w.exits(1, append([]string{"rollback", "x", "1"}, c.flags...)...)
			w.statuses("x", "superseded", "deployed", "failed")
			w.ok(append([]string{"rollback", "x", "1"}, c.again...)...)
			w.statuses("x", "superseded", "superseded", "failed", "deployed")
			if got := field(w.must("configmaps", "a"), "data.key"); got != "1" {
				t.Errorf("ConfigMap/a has key = %v, want 1", got)
			}
			w.ok("upgrade", "x", w.chart(configMap("a", "3")), "--allow-recreate")
		})
	}
}

// A hook that has succeeded hasn't failed because that couldn't be recorded: its policy for
// failures doesn't delete it.
func TestSucceededHookIsNotBlamedForItsRecord(t *testing.T) {
	w := newWorld(t)
	p := w.proxied()
	refused := false
	p.failing(func(_ int, c call) int {
		if refused || c.method != http.MethodPut || !strings.Contains(c.path, "/secrets/") || len(p.jobs) == 0 {
			return 0
		}
		refused = true
		return http.StatusUnprocessableEntity // for good, unlike a 403, which is asked again
	})
	r := w.exits(1, "install", "x", w.chart(configMap("a", "1"), hookJob("prepare", "pre-install", "hook-failed", false)))
	if !refused {
		t.Fatal("no write of the record was refused after the hook was created")
	}
	w.says(r, "stderr", "writing Secret/")
	if strings.Contains(r.err, "pre-install hook") && strings.Contains(r.err, "failed: writing") {
		t.Errorf("the hook is said to have failed: %s", r)
	}
	w.must("jobs", "prepare")
}

// One container's log that can't be read hides no other one.
func TestUnreadLogHidesNoOthers(t *testing.T) {
	w := newWorld(t)
	pod := `apiVersion: v1
kind: Pod
metadata:
  name: check
  annotations:
    helm.sh/hook: test
    sim.deployer/logs: all is well
    sim.deployer/steps: '[{"phase":"Succeeded","state":{"terminated":{"exitCode":0,"reason":"Completed"}}}]'
spec:
  restartPolicy: Never
  containers: [{name: first, image: r/x:1}, {name: second, image: r/x:1}]
`
	w.ok("install", "x", w.chart(configMap("a", "1"), pod))
	w.proxied().failing(func(_ int, c call) int {
		if strings.Contains(c.path, "/log?container=first") {
			return http.StatusForbidden
		}
		return 0
	})
	r := w.ok("test", "x", "--logs")
	w.says(r, "stdout", "POD LOGS: check", "all is well")
	w.says(r, "stderr", "reading the log of Pod/.*/check")
}
