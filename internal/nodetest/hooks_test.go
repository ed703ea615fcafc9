package nodetest

import (
	"strings"
	"testing"
	"time"
)

func TestHookLogsAreShownWhileItRuns(t *testing.T) {
	w := newWorld(t)
	w.write("templates/migrate.yaml", hookJob("containers:\n"+shell("app", "echo first step; sleep 4; echo second step")))
	r := w.deployer(0, []string{"Job/" + w.ns + "/migrate"}, "install", "web", w.chart)
	first, ok := r.when("first step")
	if !ok {
		t.Fatalf("the hook's log isn't shown:\n%s", r)
	}
	second, ok := r.when("second step")
	if !ok {
		t.Fatalf("the end of the hook's log isn't shown:\n%s", r)
	}
	if second-first < 2*time.Second {
		t.Errorf("the lines came %s apart, they were written 4s apart:\n%s", second-first, r)
	}
}

func TestFailingHookIsReportedWithItsLog(t *testing.T) {
	w := newWorld(t)
	w.write("templates/migrate.yaml", hookJob("containers:\n"+shell("app", "echo relation exists; exit 7")))
	w.write("templates/web.yaml", website("one"))
	r := w.deployer(1, []string{"Job/" + w.ns + "/migrate", "relation exists", "7"}, "install", "web", w.chart)
	_, report, _ := strings.Cut(r.stderr(), "✗")
	if !strings.Contains(report, "relation exists") {
		t.Errorf("the report doesn't show the hook's log:\n%s", r)
	}
}

func TestFailingHookBeforeUpgradeLeavesTheOldServing(t *testing.T) {
	w := newWorld(t)
	w.write("templates/web.yaml", website("one"))
	w.deployer(0, nil, "install", "web", w.chart)
	w.write("templates/web.yaml", website("two"))
	w.write("templates/migrate.yaml", hookJob("containers:\n"+shell("app", "echo relation exists; exit 7")))
	w.deployer(1, []string{"relation exists"}, "upgrade", "web", w.chart)
	if got := w.page(); got != "one" {
		t.Errorf("the page after the failed hook is %q, want one", got)
	}
}
