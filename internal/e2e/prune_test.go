package e2e

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/internal/kubetest"
)

// TestPruneAfterFailures: what failed releases have made goes with the
// next good one, whichever of them made it.
func TestPruneAfterFailures(t *testing.T) {
	t.Parallel()
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
	t.Run("rollback after two failures", func(t *testing.T) {
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

// TestAloneGroupThatIsDown: while an API group doesn't answer, what the chart
// drops stays, unless told otherwise; what a rollback drops never depends on it,
// nor what a chart drops that can't have asked what the cluster serves.
// It disturbs all other tests in the cluster: make test-alone.
func TestAloneGroupThatIsDown(t *testing.T) {
	kubetest.Alone(t)
	w := newWorld(t)
	a, b, c := configMap("a", "1"), configMap("b", "1"), configMap("c", "1")
	asks := "{{ if .Capabilities.APIVersions.Has \"gone.example.com/v1\" }}" + configMap("gone", "1") + "{{ end }}"
	w.ok("install", "x", w.chart(a, b, asks))
	w.ok("upgrade", "x", w.chart(a, b, c, asks))
	w.ok("install", "y", w.chart(configMap("d", "1"), configMap("e", "1"), configMap("f", "1")))
	name := "v1." + w.ns + ".example.com"
	w.create("apiservices", "test", `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: `+name+`},
spec: {group: `+w.ns+`.example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {namespace: `+w.ns+`, name: nowhere}}}`)
	t.Cleanup(func() { _ = w.in("apiservices").Delete(context.Background(), name, metav1.DeleteOptions{}) })
	var plan result
	w.eventually("the group is down", func() bool {
		plan = w.ok("plan", "x", w.chart(a, asks))
		return strings.Contains(plan.out, w.ns+".example.com")
	})
	w.says(plan, "stdout", "keep: the API server can't list .*--allow-partial-discovery")
	w.ok("rollback", "x", "1")
	w.there("configmaps", map[string]bool{"a": true, "b": true, "c": false})
	w.ok("upgrade", "x", w.chart(a, asks))
	w.there("configmaps", map[string]bool{"a": true, "b": true})
	w.ok("upgrade", "x", w.chart(a, asks), "--allow-partial-discovery")
	w.there("configmaps", map[string]bool{"a": true, "b": false})

	w.ok("upgrade", "y", w.chart(configMap("d", "1"), configMap("e", "1")))
	w.there("configmaps", map[string]bool{"d": true, "e": true, "f": false})
	evaluated := map[string]string{
		"templates/d.yaml": configMap("d", "1") + "\n# {{ tpl .Values.text . }}\n",
		"values.yaml":      "text: '{{ .Capabilities.KubeVersion }}'\n",
	}
	w.ok("upgrade", "y", w.chartOf(evaluated))
	w.there("configmaps", map[string]bool{"d": true, "e": true})
	file := filepath.Join(t.TempDir(), "plan")
	w.ok("plan", "y", w.chart(configMap("d", "1")), "--out", file)
	w.ok("apply", file)
	w.there("configmaps", map[string]bool{"d": true, "e": false})
}

// TestRemovedVersion: an object whose kind isn't served any more stops
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
