package e2e

import (
	"testing"
)

// TestSelectorChange: a Deployment is made anew only when that is allowed.
func TestSelectorChange(t *testing.T) {
	w := newWorld(t)
	w.ok("install", "x", w.chart(deployment("d", "one", "  replicas: 1")))
	first := w.must("deployments", "d").GetUID()
	changed := w.chart(deployment("d", "two", "  replicas: 1"))
	mark := w.mark()
	r := w.exits(3, "upgrade", "x", changed)
	w.says(r, "stderr", `Deployment/`+w.ns+`/d`, `spec\.selector`, `immutable`, `--allow-recreate`)
	if writes := w.writes(mark); len(writes) > 0 {
		t.Errorf("objects were written: %v", writes)
	}
	w.says(w.ok("plan", "x", changed, "--allow-recreate"), "stdout", `recreate`)
	w.ok("upgrade", "x", changed, "--allow-recreate")
	if got := w.must("deployments", "d"); got.GetUID() == first {
		t.Error("the Deployment was not made anew")
	}
}
