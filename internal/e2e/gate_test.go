package e2e

import (
	"testing"

	"deployer/testcharts"
)

// TestGate refuses a release two of whose objects are invalid: both are named,
// and the valid one isn't made.
func TestGate(t *testing.T) {
	w := newWorld(t)
	chart := w.chart(configMap("good", "1"), configMap("Bad_Name", "1"), deployment("bad", "x", "  replicas: -1"))
	mark := w.mark()
	r := w.exits(3, "install", "x", chart)
	w.says(r, "stderr", `Bad_Name`, `Deployment/`+w.ns+`/bad`, `replicas`, `templates/t1\.yaml`, `templates/t2\.yaml`)
	if writes := w.writes(mark); len(writes) > 0 {
		t.Errorf("objects were written: %v", writes)
	}
	w.nothingLeft()

	// The same as an upgrade: what was there stays as it was.
	w.ok("install", "x", w.chart(configMap("good", "1")))
	mark = w.mark()
	w.exits(3, "upgrade", "x", w.chart(configMap("good", "2"), deployment("bad", "x", "  replicas: -1")))
	if writes := w.writes(mark); len(writes) > 0 {
		t.Errorf("objects were written: %v", writes)
	}
	w.statuses("x", "deployed")
	if got := field(w.must("configmaps", "good"), "data.key"); got != "1" {
		t.Errorf("ConfigMap/good has key = %v, want 1", got)
	}
}

// TestPlanWritesNothing runs every kind of plan over releases of Helm and of
// deployer.
func TestPlanWritesNothing(t *testing.T) {
	w := newWorld(t)
	chart := testcharts.Dir(t, "rename")
	helmStory(w, chart)
	mark := w.mark()
	for _, args := range [][]string{
		{"plan", "app", chart, "--set", "containers={one}"},
		{"plan", "new", testcharts.Dir(t, "web")},
		{"plan", "--rollback", "app", "1"},
		{"plan", "--uninstall", "app"},
		{"upgrade", "app", chart, "--set", "containers={one}", "--dry-run"},
		{"upgrade", "app", chart, "--dry-run=server", "--set", "containers={one}"},
		{"rollback", "app", "1", "--dry-run"},
		{"uninstall", "app", "--dry-run"},
		{"template", "app", chart},
	} {
		w.ok(args...)
	}
	if writes := w.allWrites(mark); len(writes) > 0 {
		t.Errorf("plans have written: %v", writes)
	}
	w.exits(2, "plan", "app", chart, "--set", "containers={one}", "--detailed-exitcode")
	w.statuses("app", "superseded", "failed", "deployed")
}

// TestNoOpWritesNoObject: a release without changes leaves every object
// alone.
func TestNoOpWritesNoObject(t *testing.T) {
	w := newWorld(t)
	chart, name := testcharts.Dir(t, "everything"), w.unique()
	w.ok("install", name, chart, "--wait=false")
	w.ok("upgrade", name, chart, "--wait=false")
	mark := w.mark()
	w.ok("upgrade", name, chart, "--wait=false")
	if writes := w.writes(mark); len(writes) > 0 {
		t.Errorf("the second upgrade without changes has written: %v", writes)
	}
	w.exits(0, "plan", name, chart, "--detailed-exitcode")
	w.ok("uninstall", name)
	w.nothingLeft()
}
