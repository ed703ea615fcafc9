package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// autoscaler targets Deployment/d.
const autoscaler = `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: d}
spec:
  minReplicas: 1
  maxReplicas: 9
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
`

// TestRollbackLeavesAutoscaledReplicas: what an autoscaler has set stays although the revision that is gone back to says otherwise.
func TestRollbackLeavesAutoscaledReplicas(t *testing.T) {
	w := newWorld(t)
	w.helm("install", "x", w.chart(deployment("d", "d", "  replicas: 2"), autoscaler))
	w.patch("deployments", "d", "kube-controller-manager", `{"spec":{"replicas":4}}`, "scale")
	w.ok("upgrade", "x", w.chart(deployment("d", "d", "  replicas: 3"), autoscaler))
	w.ok("rollback", "x", "1")
	if got := field(w.must("deployments", "d"), "spec.replicas"); got != int64(4) {
		t.Errorf("Deployment/d has replicas = %v, want 4", got)
	}
}

// TestRolledBackByKubectl: what kubectl rollout undo, or the kubectl apply of an old manifest, brings back of a revision long ago
// goes, as the chart has dropped it. What no revision had stays.
func TestRolledBackByKubectl(t *testing.T) {
	t.Parallel()
	const strategic = `{"spec":{"template":{"spec":{"containers":[{"name":"main","env":[{"name":"OLD","value":"1"},{"name":"MINE","value":"1"}]}]}}}}`
	for _, manager := range []string{"kubectl", "kubectl-client-side-apply"} {
		t.Run(manager, func(t *testing.T) {
			w := newWorld(t)
			with := func(env string) string {
				return w.chart(replaceOnce(deployment("web", "web", "  replicas: 0"), "image: r/x:1", "image: r/x:1\n          env: ["+env+"]"))
			}
			w.ok("install", "x", with("{name: OLD, value: \"1\"}, {name: KEPT, value: \"1\"}"))
			now := with("{name: KEPT, value: \"2\"}")
			w.ok("upgrade", "x", now)
			w.ok("upgrade", "x", now, "--description", "again")
			w.eventually("nobody takes kubectl for who has made the Deployment", func() bool { // whose second it was: times are whole seconds
				return time.Since(w.must("deployments", "web").GetCreationTimestamp().Time) > 2*time.Second
			})
			_, err := w.in("deployments").Patch(t.Context(), "web", types.StrategicMergePatchType, []byte(strategic), metav1.PatchOptions{FieldManager: manager})
			if err != nil {
				t.Fatal(err)
			}
			w.says(w.ok("explain", "x", "deployment/web"), "stdout", `since revision 1; an upgrade removes it.*- spec[^\n]*OLD`)
			plan := w.ok("plan", "x", now)
			w.says(plan, "stdout", `- spec\.template\.spec\.containers\[name="main"\]\.env\[name="OLD"\].*from revision 1`, `added [^\n]*env\[name="MINE"\], which stays`)
			w.ok("upgrade", "x", now)
			containers, _ := field(w.must("deployments", "web"), "spec.template.spec.containers").([]any)
			if got := fmt.Sprint(containers[0].(map[string]any)["env"]); strings.Contains(got, "OLD") || !strings.Contains(got, "MINE") {
				t.Errorf("variables: %s", got)
			}
			w.says(w.ok("plan", "x", now), "stdout", "No changes")
		})
	}
}

// TestEditOfWhatWasDropped fails if an edit by hand is taken for an old state that has come back because the chart once had the field.
func TestEditOfWhatWasDropped(t *testing.T) {
	w := newWorld(t)
	with := func(more string) string {
		return w.chart(replaceOnce(deployment("web", "web", "  replicas: 0"), "image: r/x:1", "image: r/x:1\n          env: [{name: KEPT, value: a}"+more+"]"))
	}
	w.ok("install", "x", with(`, {name: OLD, value: "1"}`))
	w.ok("upgrade", "x", with(""))
	w.ok("upgrade", "x", with(""), "--description", "again")
	const edit = `{"spec":{"template":{"spec":{"containers":[{"name":"main","env":[{"name":"OLD","value":"2"}]}]}}}}`
	if _, err := w.in("deployments").Patch(t.Context(), "web", types.StrategicMergePatchType, []byte(edit), metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
		t.Fatal(err)
	}
	w.says(w.ok("upgrade", "x", with("")), "stderr", `kubectl-edit added [^\n]*env\[name="OLD"\], which stays`)
	containers, _ := field(w.must("deployments", "web"), "spec.template.spec.containers").([]any)
	if got := fmt.Sprint(containers[0].(map[string]any)["env"]); !strings.Contains(got, "OLD") {
		t.Errorf("variables: %s", got)
	}
}

// TestRenumberedByHand: the port that somebody has renumbered is the chart's again,
// whoever made the release, and its node port stays.
func TestRenumberedByHand(t *testing.T) {
	t.Parallel()
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec:\n  type: NodePort\n  selector: {a: b}\n  ports: [{name: http, port: 80}]\n"
	for name, install := range map[string]func(*world, ...string) result{"of deployer": (*world).ok, "of helm": (*world).helm} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			chart := w.chart(service)
			install(w, "install", "x", chart)
			ports := func() []any { list, _ := field(w.must("services", "s"), "spec.ports").([]any); return list }
			was := ports()[0].(map[string]any)["nodePort"]
			port := func(when string, want int64) {
				t.Helper()
				got := ports()
				if is := got[0].(map[string]any); len(got) != 1 || is["port"] != want || is["nodePort"] != was {
					t.Errorf("%s: ports %v, want one, of number %d and node port %v", when, got, want, was)
				}
			}
			w.patch("services", "s", "some-operator", fmt.Sprintf(`{"spec":{"ports":[{"name":"http","port":8080,"nodePort":%v}]}}`, was))
			w.says(w.exits(3, "upgrade", "x", chart, "--conflicts=fail"), "stderr", `spec\.ports\[port=8080,protocol="TCP"\]`, `some-operator`)
			port("refused", 8080)
			w.ok("upgrade", "x", chart, "--conflicts=yield")
			port("yielded", 8080)
			w.says(w.ok("plan", "x", chart), "stdout", `- spec\.ports\[port=8080`, `taken from "some-operator"`, `is removed: it has the name "http", as the chart's spec\.ports\[port=80`)
			w.says(w.ok("upgrade", "x", chart), "stderr", `spec\.ports\[port=8080,protocol="TCP"\], set by some-operator, is removed`)
			port("taken", 80)
		})
	}
}
