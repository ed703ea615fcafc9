package e2e

import (
	"testing"
)

// TestUnownedObject: what belongs to nobody is taken only when asked for,
// and then without what others have added.
func TestUnownedObject(t *testing.T) {
	w := newWorld(t)
	w.create("configmaps", "kubectl-create", configMap("a", "theirs"))
	w.patch("configmaps", "a", "other", `{"data":{"extra":"1"}}`)
	chart := w.chart(configMap("a", "ours"), configMap("b", "1"))
	mark := w.mark()
	r := w.exits(3, "install", "x", chart)
	w.says(r, "stderr", `ConfigMap/`+w.ns+`/a`, `--take-ownership`, `invalid ownership metadata`)
	if writes := w.writes(mark); len(writes) > 0 {
		t.Errorf("objects were written: %v", writes)
	}
	w.statuses("x")

	w.ok("install", "x", chart, "--take-ownership")
	a := w.must("configmaps", "a")
	if key, extra := field(a, "data.key"), field(a, "data.extra"); key != "ours" || extra != "1" {
		t.Errorf("ConfigMap/a has key = %v, extra = %v; want ours, 1", key, extra)
	}
}

// TestObjectOfAnotherRelease: taking from another release needs
// more than --take-ownership, and who has lost an object is told so.
func TestObjectOfAnotherRelease(t *testing.T) {
	w := newWorld(t)
	first, second := w.chart(configMap("a", "first")), w.chart(configMap("a", "second"))
	w.ok("install", "first", first)
	for _, flags := range [][]string{nil, {"--take-ownership"}} {
		r := w.exits(3, append([]string{"install", "second", second}, flags...)...)
		w.says(r, "stderr", `ConfigMap/`+w.ns+`/a`, `first`)
	}
	w.ok("install", "second", second, "--take-ownership-from", w.ns+"/first")
	r := w.exits(3, "upgrade", "first", first)
	w.says(r, "stderr", `ConfigMap/`+w.ns+`/a`, `second`)

	// What belongs to another release by now isn't pruned. It is also how a
	// release is renamed: the new one takes all, the old one is uninstalled.
	w.ok("upgrade", "first", w.chart(configMap("b", "1")))
	w.ok("uninstall", "first")
	w.there("configmaps", map[string]bool{"a": true, "b": false})
	w.ok("uninstall", "second")
	w.nothingLeft()
}

// TestKeep: an annotated object outlives its release.
func TestKeep(t *testing.T) {
	w := newWorld(t)
	w.ok("install", "x", w.chart(kept("a", "1"), kept("b", "1"), configMap("c", "1")))
	r := w.ok("upgrade", "x", w.chart(kept("b", "1"), configMap("c", "1")))
	w.says(r, "stderr", `ConfigMap/`+w.ns+`/a`)
	w.there("configmaps", map[string]bool{"a": true})
	w.ok("uninstall", "x")
	w.nothingLeft("ConfigMap/a", "ConfigMap/b")
	// The same release may have them again.
	w.ok("install", "x", w.chart(kept("a", "2"), kept("b", "2")))
}

// TestHookBecomesObject: the object stays when a hook becomes a template, and the other way round.
func TestHookBecomesObject(t *testing.T) {
	w := newWorld(t)
	const steps = `[{"phase":"Succeeded","state":{"terminated":{"exitCode":0}}}]`
	regular := w.chart(configMap("a", "1"), job("work", "a: b", steps, "r/x:1"))
	hook := w.chart(configMap("a", "1"), hookJob("work", "pre-install,pre-upgrade", "before-hook-creation", false))
	w.helm("install", "x", hook)
	w.ok("upgrade", "x", regular)
	w.there("jobs", map[string]bool{"work": true})
	w.ok("upgrade", "x", hook)
	w.there("jobs", map[string]bool{"work": true})
	if _, ok := w.must("jobs", "work").GetAnnotations()[hookAnnotation]; !ok {
		t.Error("Job/work is not the hook's")
	}
}

// TestHookAtBothEvents runs one hook before and after the change.
func TestHookAtBothEvents(t *testing.T) {
	w := newWorld(t)
	chart := w.chart(configMap("a", "1"), hookJob("work", "pre-install,post-install,pre-upgrade,post-upgrade", "before-hook-creation", false))
	w.ok("install", "x", chart)
	w.ok("upgrade", "x", chart)
	w.says(w.ok("plan", "x", chart), "stdout", "pre-upgrade", "post-upgrade")
}

// TestHookRunsAgain: a hook's Job that an earlier run has left, because
// it failed or the run was killed, doesn't stop the next release, and the hook
// runs again.
func TestHookRunsAgain(t *testing.T) {
	w := newWorld(t)
	w.ok("install", "x", w.chart(configMap("a", "1")))
	w.exits(1, "upgrade", "x", w.chart(configMap("a", "1"), hookJob("work", "post-upgrade", "hook-succeeded", true)))
	w.there("jobs", map[string]bool{"work": true})
	w.ok("upgrade", "x", w.chart(configMap("a", "1"), hookJob("work", "post-upgrade", "hook-succeeded", false)))
	w.there("jobs", map[string]bool{"work": false})
}
