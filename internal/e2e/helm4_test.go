package e2e

import (
	"fmt"
	"slices"
	"testing"

	"deployer/internal/helmtest"
	"deployer/testcharts"
)

// helm4 runs Helm 4, which has to succeed.
func (w *world) helm4(args ...string) result {
	w.Helper()
	return w.helm4Exits(0, args...)
}

// helm4Exits runs Helm 4, which has to end with the code.
func (w *world) helm4Exits(code int, args ...string) result {
	w.Helper()
	return w.run(helmtest.Helm4(w.T), code, args...)
}

// helm4Client are the charts that Helm 4 also installs in Helm 3's way, which
// TestPublicCharts has more of.
var helm4Client = []string{"podinfo", "nats"}

// TestPublicChartsOfHelm4 goes on with what Helm 4 has installed, by server-side
// apply or as Helm 3 does, lets Helm 4 in between, and changes nothing.
func TestPublicChartsOfHelm4(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"true", "false"} {
		for _, c := range chartsOf(storyOfHelm4) {
			if c.random || method == "false" && !slices.Contains(helm4Client, c.name) {
				continue
			}
			t.Run(c.name+" server-side="+method, func(t *testing.T) {
				w := newWorld(t)
				if c.name == "cert-manager" && method == "true" {
					w.cluster.Since(t, "1.30", "selectableFields of CustomResourceDefinitions, without which Helm 4 doesn't install it,")
				}
				name, chart := w.unique(), publicChart(t, c.name)
				flags := c.flags(w, name)
				ours := append([]string{fmt.Sprint("--wait=", !c.unwaited)}, flags...)
				theirs := flags
				if c.name == "ingress-nginx" {
					// Its Jobs are gone as soon as they are complete (TTL 0): Helm 4
					// waits for ever when it misses that moment.
					theirs = append(slices.Clone(flags), "--no-hooks")
				}
				w.sole(c.name, name)

				w.helm4(append([]string{"install", name, chart, "--server-side=" + method}, theirs...)...)
				before := generations(withoutHooks(w.everything()))
				w.noChanges(w.ok(append([]string{"plan", name, chart, "-o", "json"}, flags...)...))
				w.ok(append([]string{"upgrade", name, chart}, ours...)...)
				w.unchanged("the first release of deployer", before, generations(withoutHooks(w.everything())))
				w.noOpUpgrade(name, chart, ours)

				w.helm4(append([]string{"upgrade", name, chart}, theirs...)...)
				w.unchanged("Helm 4 after it", before, generations(withoutHooks(w.everything())))
				w.noChanges(w.ok(append([]string{"plan", name, chart, "-o", "json"}, flags...)...))
				w.ok(append([]string{"upgrade", name, chart}, ours...)...)
				w.helm4("rollback", name, "2")
				w.unchanged("Helm 4's rollback", before, generations(withoutHooks(w.everything())))
				w.ok("uninstall", name)
				w.nothingLeft(c.left...)
				w.nothingLeftOutside(name)
			})
		}
	}
}

// TestAlternatesWithHelm4: what Helm 4 adds between two
// releases of deployer goes when the chart doesn't have it any more, also when
// its release has failed.
func TestAlternatesWithHelm4(t *testing.T) {
	w := newWorld(t)
	chart := testcharts.Dir(t, "rename")
	w.helm4("install", "app", chart)
	w.helm4Exits(1, "upgrade", "app", chart, "--set", "containers={main,lost}", "--set", "hook.fail=true")
	w.ok("upgrade", "app", chart, "--set", "containers={main}")
	w.containers("app", "main")
	w.helm4("upgrade", "app", chart, "--set", "containers={main,extra}")
	w.containers("app", "main", "extra")
	w.ok("upgrade", "app", chart, "--set", "containers={main}")
	w.containers("app", "main")
	w.helm4("rollback", "app", "4")
	w.containers("app", "main", "extra")
	w.ok("rollback", "app", "1")
	w.containers("app", "main")
	w.helm4("uninstall", "app")
	w.nothingLeft("Job/migrate")
}

// TestHelm4ContinuesAfterConflicts: fields that deployer has taken from others
// are no conflict for Helm 4 afterwards.
func TestHelm4ContinuesAfterConflicts(t *testing.T) {
	w := newWorld(t)
	chart := w.chart(configMap("a", "1"))
	w.helm4("install", "x", chart)
	w.patch("configmaps", "a", "kubectl-edit", `{"data":{"key":"hotfix","more":"1"}}`)
	w.helm4Exits(1, "upgrade", "x", chart)
	w.ok("upgrade", "x", chart)
	w.helm4("upgrade", "x", w.chart(configMap("a", "2")))
	if a := w.must("configmaps", "a"); field(a, "data.key") != "2" || field(a, "data.more") != "1" {
		t.Errorf("ConfigMap/a has %v, want key 2 and more 1", field(a, "data"))
	}
}
