package e2e

import (
	"testing"
)

// succeeds is what the pod of a Job goes through that ends well.
const succeeds = `[{"phase":"Succeeded","state":{"terminated":{"exitCode":0}}}]`

// TestJobIsRecreated: a Job whose template changes is made anew without
// asking; one that doesn't change is left alone.
func TestJobIsRecreated(t *testing.T) {
	w := newWorld(t)
	w.ok("install", "x", w.chart(job("work", "a: b", succeeds, "r/x:1")))
	first := w.must("jobs", "work").GetUID()
	w.ok("upgrade", "x", w.chart(job("work", "a: b", succeeds, "r/x:1")))
	if got := w.must("jobs", "work").GetUID(); got != first {
		t.Error("a Job that didn't change was made anew")
	}
	w.ok("upgrade", "x", w.chart(job("work", "a: b", succeeds, "r/x:2")))
	if got := w.must("jobs", "work").GetUID(); got == first {
		t.Error("the Job was not made anew")
	}
}

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

// TestStrategyChange: RollingUpdate's defaults don't stand in the way of
// Recreate, nor the other way round; for objects of both programs.
func TestStrategyChange(t *testing.T) {
	t.Parallel()
	for name, install := range map[string]func(*world, ...string) result{"of deployer": (*world).ok, "of helm": (*world).helm} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			plain, recreate := w.chart(deployment("d", "d", "  replicas: 1")), w.chart(deployment("d", "d", "  strategy: {type: Recreate}"))
			install(w, "install", "x", plain)
			w.ok("upgrade", "x", recreate)
			if got := field(w.must("deployments", "d"), "spec.strategy"); len(got.(map[string]any)) != 1 {
				t.Errorf("strategy = %v, want Recreate alone", got)
			}
			w.ok("upgrade", "x", plain)
			if got := field(w.must("deployments", "d"), "spec.strategy.type"); got != "RollingUpdate" {
				t.Errorf("strategy = %v, want RollingUpdate", got)
			}
		})
	}
}
