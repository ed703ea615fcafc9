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

// replicas checks how many replicas Deployment/d asks for.
func (w *world) replicas(when string, want int64) {
	w.Helper()
	if got := field(w.must("deployments", "d"), "spec.replicas"); got != want {
		w.Errorf("%s: Deployment/d has replicas = %v, want %d", when, got, want)
	}
}

// TestAutoscaledReplicas: what an autoscaler has set stays although the
// chart says otherwise.
func TestAutoscaledReplicas(t *testing.T) {
	t.Parallel()
	for name, install := range map[string]func(*world, ...string) result{"of deployer": (*world).ok, "of helm": (*world).helm} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			install(w, "install", "x", w.chart(deployment("d", "d", "  replicas: 2"), autoscaler))
			w.patch("deployments", "d", "kube-controller-manager", `{"spec":{"replicas":4}}`, "scale")
			w.ok("upgrade", "x", w.chart(deployment("d", "d", "  replicas: 2\n  minReadySeconds: 1"), autoscaler))
			w.replicas("upgraded", 4)
			w.ok("upgrade", "x", w.chart(deployment("d", "d", "  replicas: 3"), autoscaler))
			w.replicas("upgraded with other replicas", 4)
			w.ok("rollback", "x", "1")
			w.replicas("rolled back", 4)
		})
	}
}

// TestAutoscalerAtZero: an autoscaler leaves a workload without replicas alone,
// so these are not the autoscaler's and get the chart's number.
// https://kubernetes.io/docs/concepts/workloads/autoscaling/horizontal-pod-autoscale/#implicit-maintenance-mode-deactivation
func TestAutoscalerAtZero(t *testing.T) {
	t.Parallel()
	for name, install := range map[string]func(*world, ...string) result{"of deployer": (*world).ok, "of helm": (*world).helm} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			install(w, "install", "x", w.chart(deployment("d", "d", "  replicas: 0"), autoscaler))
			w.ok("upgrade", "x", w.chart(deployment("d", "d", "  replicas: 2"), autoscaler))
			w.replicas("upgraded", 2)
		})
	}
}

// TestReplicasLeaveTheChart: they stay what they are until the autoscaler
// decides; the API server's default is 1.
func TestReplicasLeaveTheChart(t *testing.T) {
	t.Parallel()
	for name, install := range map[string]func(*world, ...string) result{"of deployer": (*world).ok, "of helm": (*world).helm} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			install(w, "install", "x", w.chart(deployment("d", "d", "  replicas: 5")))
			w.ok("upgrade", "x", w.chart(deployment("d", "d", "  minReadySeconds: 0"), autoscaler))
			w.replicas("with an autoscaler", 5)
			w.ok("upgrade", "x", w.chart(deployment("d", "d", "  minReadySeconds: 1"), autoscaler))
			w.replicas("and once more", 5)
		})
	}
}

// TestChangesByHand: a field of the chart gets the chart's value
// again, what somebody has added stays.
func TestChangesByHand(t *testing.T) {
	w := newWorld(t)
	chart := w.chart(configMap("a", "1"))
	w.ok("install", "x", chart)
	w.patch("configmaps", "a", "kubectl-edit", `{"data":{"key":"hotfix","more":"1"}}`)
	plan := w.ok("plan", "x", chart)
	w.says(plan, "stdout", `data\.key`, `kubectl-edit`)
	w.ok("upgrade", "x", chart)
	a := w.must("configmaps", "a")
	if key, more := field(a, "data.key"), field(a, "data.more"); key != "1" || more != "1" {
		t.Errorf("ConfigMap/a has key = %v, more = %v; want 1, 1", key, more)
	}
	w.patch("configmaps", "a", "kubectl-edit", `{"data":{"key":"hotfix"}}`)
	w.exits(3, "upgrade", "x", chart, "--conflicts=fail")
	w.ok("upgrade", "x", chart, "--conflicts=yield")
	if key := field(w.must("configmaps", "a"), "data.key"); key != "hotfix" {
		t.Errorf("ConfigMap/a has key = %v, want hotfix", key)
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

// TestAllocatedFields: what the API server gave a Service stays, whether
// the chart leaves it out or has it empty.
func TestAllocatedFields(t *testing.T) {
	w := newWorld(t)
	service := func(more string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec:\n  type: NodePort\n  selector: {a: b}\n  ports: [{port: 80%s}]\n", more)
	}
	w.helm("install", "x", w.chart(service("")))
	was := w.must("services", "s")
	for _, more := range []string{"", ", nodePort: 0", ", name: http"} {
		w.ok("upgrade", "x", w.chart(service(more)))
	}
	is := w.must("services", "s")
	if was, is := field(was, "spec.clusterIP"), field(is, "spec.clusterIP"); was != is {
		t.Errorf("clusterIP was %v and is %v", was, is)
	}
	port := func(list any) any { return list.([]any)[0].(map[string]any)["nodePort"] }
	if was, is := port(field(was, "spec.ports")), port(field(is, "spec.ports")); was != is {
		t.Errorf("nodePort was %v and is %v", was, is)
	}
}

// TestAggregatedRules: rules that the API server collects are never
// emptied.
func TestAggregatedRules(t *testing.T) {
	w := newWorld(t)
	name := w.unique()
	chart := w.chart(fmt.Sprintf(`apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {part-of: %[1]s}}]}
rules: []
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s-part, labels: {part-of: %[1]s}}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
`, name))
	w.helm("install", "x", chart)
	rules := func() int { list, _ := field(w.must("clusterroles", name), "rules").([]any); return len(list) }
	w.eventually("the rules are collected", func() bool { return rules() == 1 })
	was := w.must("clusterroles", name).GetResourceVersion()
	w.ok("upgrade", "x", chart)
	w.ok("upgrade", "x", chart)
	if got := rules(); got != 1 {
		t.Errorf("ClusterRole/%s has %d rules, want 1 (resourceVersion was %s)", name, got, was)
	}
	w.ok("uninstall", "x")
}

// TestDuplicateEntries: variables named twice end as one, with the
// last value; two protocols of one port stay two.
func TestDuplicateEntries(t *testing.T) {
	t.Parallel()
	for name, install := range map[string]func(*world, ...string) result{"of deployer": (*world).ok, "of helm": (*world).helm} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			chart := w.chart(deployment("d", "d", "  replicas: 1") +
				"          env: [{name: A, value: \"1\"}, {name: B, value: \"1\"}, {name: A, value: \"2\"}]\n" +
				"          ports: [{containerPort: 53}, {containerPort: 53, protocol: UDP}]\n")
			install(w, "install", "x", chart)
			w.ok("upgrade", "x", chart)
			list, _ := field(w.must("deployments", "d"), "spec.template.spec.containers").([]any)
			container := list[0].(map[string]any)
			values := map[string]any{}
			for _, e := range container["env"].([]any) {
				entry := e.(map[string]any)
				if _, twice := values[entry["name"].(string)]; twice {
					t.Errorf("variable %v is there twice", entry["name"])
				}
				values[entry["name"].(string)] = entry["value"]
			}
			if values["A"] != "2" || values["B"] != "1" {
				t.Errorf("the variables are %v, want A=2 B=1", values)
			}
			if ports := container["ports"].([]any); len(ports) != 2 {
				t.Errorf("the ports are %v, want TCP and UDP", ports)
			}
		})
	}
}
