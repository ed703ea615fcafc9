package e2e

import (
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

// TestDroppedHooks is S107 and S110: the Job of a hook stays while the chart has
// the hook, and goes with it. An object that becomes a hook of another event
// stays too.
func TestDroppedHooks(t *testing.T) {
	w := newWorld(t)
	work := hookJob("work", "post-install", "before-hook-creation", false)
	first := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, annotations: {helm.sh/hook: pre-install}}\n"
	w.ok("install", "x", w.chart(configMap("a", "1"), configMap("b", "1"), work))
	w.ok("upgrade", "x", w.chart(configMap("a", "1"), first, work))
	w.there("jobs", map[string]bool{"work": true})
	w.there("configmaps", map[string]bool{"b": true})
	w.says(w.ok("upgrade", "x", w.chart(configMap("a", "1"), first)), "stderr", `Job/`+w.ns+`/work`)
	w.there("jobs", map[string]bool{"work": false})
	w.there("configmaps", map[string]bool{"b": true})
}

// TestFailingRollback is S106: the rollback has failed, and nothing is stuck. It
// can be run again.
func TestFailingRollback(t *testing.T) {
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
