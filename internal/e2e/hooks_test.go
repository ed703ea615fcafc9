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

// TestFailingRollbackHook is S106: the rollback has failed, and nothing is stuck.
func TestFailingRollbackHook(t *testing.T) {
	for _, event := range []string{"pre-rollback", "post-rollback"} {
		t.Run(event, func(t *testing.T) {
			w := newWorld(t)
			w.ok("install", "x", w.chart(configMap("a", "1"), hookJob("back", event, "before-hook-creation", true)))
			w.ok("upgrade", "x", w.chart(configMap("a", "2")))
			w.exits(1, "rollback", "x", "1")
			w.statuses("x", "superseded", "deployed", "failed")
			w.ok("upgrade", "x", w.chart(configMap("a", "3")))
			if got := field(w.must("configmaps", "a"), "data.key"); got != "3" {
				t.Errorf("ConfigMap/a has key = %v, want 3", got)
			}
		})
	}
}
