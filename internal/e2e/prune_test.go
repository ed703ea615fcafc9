package e2e

import (
	"testing"
)

// TestPruneAfterFailures is S75: what failed releases have made goes with the
// next good one, whichever of them made it.
func TestPruneAfterFailures(t *testing.T) {
	a, b, c := configMap("a", "1"), configMap("b", "1"), configMap("c", "1")
	fails := hookJob("fails", "post-upgrade", "before-hook-creation,hook-failed", true)

	t.Run("one failure", func(t *testing.T) {
		w := newWorld(t)
		w.ok("install", "x", w.chart(a))
		w.exits(1, "upgrade", "x", w.chart(a, b, fails))
		w.there("configmaps", map[string]bool{"a": true, "b": true})
		w.ok("upgrade", "x", w.chart(a))
		w.there("configmaps", map[string]bool{"a": true, "b": false})
	})
	t.Run("two failures", func(t *testing.T) {
		w := newWorld(t)
		w.ok("install", "x", w.chart(a))
		w.exits(1, "upgrade", "x", w.chart(a, b, fails))
		w.exits(1, "upgrade", "x", w.chart(a, c, fails))
		w.ok("upgrade", "x", w.chart(a))
		w.there("configmaps", map[string]bool{"a": true, "b": false, "c": false})
	})
	t.Run("two failures of Helm", func(t *testing.T) {
		w := newWorld(t)
		w.helm("install", "x", w.chart(a))
		w.helmExits(1, "upgrade", "x", w.chart(a, b, fails))
		w.helmExits(1, "upgrade", "x", w.chart(a, c, fails))
		w.ok("upgrade", "x", w.chart(a))
		w.there("configmaps", map[string]bool{"a": true, "b": false, "c": false})
	})
	t.Run("a failed install", func(t *testing.T) {
		w := newWorld(t)
		broken := hookJob("fails", "post-install", "before-hook-creation,hook-failed", true)
		w.exits(1, "install", "x", w.chart(a, b, broken))
		w.ok("upgrade", "--install", "x", w.chart(a))
		w.there("configmaps", map[string]bool{"a": true, "b": false})
	})
	t.Run("rollback after two failures", func(t *testing.T) { // S87
		w := newWorld(t)
		w.ok("install", "x", w.chart(a))
		w.exits(1, "upgrade", "x", w.chart(configMap("a", "2"), b, fails))
		w.exits(1, "upgrade", "x", w.chart(configMap("a", "3"), c, fails))
		w.ok("rollback", "x")
		w.there("configmaps", map[string]bool{"a": true, "b": false, "c": false})
		if got := field(w.must("configmaps", "a"), "data.key"); got != "1" {
			t.Errorf("ConfigMap/a has key = %v, want 1", got)
		}
	})
}

// TestRemovedVersion is S50: an object whose kind isn't served any more stops
// neither an upgrade nor an uninstall.
func TestRemovedVersion(t *testing.T) {
	w := newWorld(t)
	name := w.unique()
	crd := widgetCRD(name)
	w.ok("install", "crd", w.chart(crd))
	w.ok("install", "x", w.chart(configMap("a", "1"), widget(name)))
	w.ok("uninstall", "crd")
	w.ok("upgrade", "x", w.chart(configMap("a", "2")))
	w.ok("rollback", "x", "2")
	w.ok("uninstall", "x")
	w.nothingLeft()
}
