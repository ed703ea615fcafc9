package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// stages are the steps of a plan that write, with what is deleted in each: "prune first: delete X", "apply".
func (p shownPlan) stages() []string {
	var out []string
	for _, s := range p.Stages {
		if s.Kind == "wait" {
			continue
		}
		text := s.Kind
		for _, o := range s.Objects {
			if o.Action == "delete" {
				text += " " + o.Object
			}
		}
		out = append(out, text)
	}
	return out
}

// TestDroppedActorsGoFirst: what would act on the changes is gone before them.
func TestDroppedActorsGoFirst(t *testing.T) {
	w := newWorld(t)
	autoscaler := `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 3
  maxReplicas: 4
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]
`
	others := []string{
		"apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: {count/configmaps: 100}}\n",
		"apiVersion: v1\nkind: LimitRange\nmetadata: {name: l}\nspec: {limits: [{type: PersistentVolumeClaim, max: {storage: 8Gi}}]}\n",
		"apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\nspec: {minAvailable: 1, selector: {matchLabels: {app: web}}}\n",
	}
	w.ok(append([]string{"install", "x", "--wait=false"}, w.chart(append(others, deployment("web", "web", ""), autoscaler, configMap("old", "1"))...))...)
	w.cluster.Eventually(t, time.Minute, "the autoscaler's number", func(context.Context) error {
		if n := field(w.must("deployments", "web"), "spec.replicas"); n != int64(3) {
			return fmt.Errorf("%v replicas", n)
		}
		return nil
	})
	next := w.chart(deployment("web", "web", "  replicas: 2\n  minReadySeconds: 16"), configMap("new", "1"))
	plan := w.plan("x", next)
	want := fmt.Sprintf("prune HorizontalPodAutoscaler/%[1]s/web PodDisruptionBudget/%[1]s/web LimitRange/%[1]s/l ResourceQuota/%[1]s/q, apply, apply, prune ConfigMap/%[1]s/old", w.ns)
	if got := strings.Join(plan.stages(), ", "); got != want {
		t.Errorf("the plan has\n%s\nwant\n%s", got, want)
	}
	// The controller of autoscalers looks every 15 seconds.
	w.ok("upgrade", "x", next)
	if n := field(w.must("deployments", "web"), "spec.replicas"); n != int64(2) {
		t.Errorf("%v replicas, the chart says 2", n)
	}
}

// TestDroppedActorThatIsHeld fails if nothing can be changed any more because a finalizer holds what the chart dropped, and
// who would remove it is gone.
func TestDroppedActorThatIsHeld(t *testing.T) {
	w := newWorld(t)
	held := "apiVersion: v1\nkind: LimitRange\nmetadata: {name: l, finalizers: [example.com/x]}\nspec: {limits: [{type: PersistentVolumeClaim, max: {storage: 8Gi}}]}\n"
	w.ok("install", "x", w.chart(held, configMap("a", "1")))
	t.Cleanup(func() {
		_, _ = w.in("limitranges").Patch(w.bound(), "l", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	})
	for _, value := range []string{"2", "3"} { // it is still there when the next run begins
		w.says(w.exits(1, "upgrade", "x", w.chart(configMap("a", value), hookJob("after", "post-upgrade", "hook-failed", true))), "stderr",
			`LimitRange/`+w.ns+`/l: it may act on what changes now: .*example.com/x`)
		if got := field(w.must("configmaps", "a"), "data.key"); got != value {
			t.Errorf("ConfigMap/a has %v", got)
		}
	}
}

// TestUndoBringsBackWhatWentFirst fails if --atomic doesn't restore a cluster-scoped object that only the revision before has, and
// that was deleted before the first change.
func TestUndoBringsBackWhatWentFirst(t *testing.T) {
	w := newWorld(t)
	name := w.unique()
	judge := replaceOnce(strings.NewReplacer("NS", w.ns, "UNIQUE", name).Replace(webhookOf("Ignore")), "resources: [configmaps]", "resources: [podtemplates]")
	w.ok("install", name, w.chart(judge, configMap("a", "1")))
	w.exits(6, "upgrade", name, "--atomic", w.chart(configMap("a", "2"), hookJob("after", "post-upgrade", "hook-failed", true)))
	if w.get("validatingwebhookconfigurations", name) == nil {
		t.Error("the webhook configuration wasn't restored")
	}
}

// TestFullQuotaMakesWayForWhatIsReplaced fails if a Job, of a hook or not, isn't replaced because a quota counts the one that is
// there.
func TestFullQuotaMakesWayForWhatIsReplaced(t *testing.T) {
	w := newWorld(t)
	w.create("resourcequotas", "somebody", "{apiVersion: v1, kind: ResourceQuota, metadata: {name: full}, spec: {hard: {count/jobs.batch: '2'}}}")
	w.eventually("the quota is counted", func() bool { return field(w.must("resourcequotas", "full"), "status.hard") != nil })
	chart := func(value, image string) string {
		return w.chart(configMap("a", value), hookJob("before", "pre-install,pre-upgrade", "before-hook-creation", false),
			job("batch", "a: b", `[{"phase":"Succeeded","state":{"terminated":{"exitCode":0,"reason":"Completed"}}}]`, image))
	}
	w.ok("install", "x", chart("1", "r/x:1"))
	w.ok("upgrade", "x", chart("2", "r/x:1"))
	w.ok("upgrade", "x", chart("3", "r/x:2"))
}

// TestHooksOfAnUninstallDeleteNothing fails if an uninstall deletes workloads because its pre-delete hook finds no room.
func TestHooksOfAnUninstallDeleteNothing(t *testing.T) {
	w := newWorld(t)
	w.create("resourcequotas", "somebody", "{apiVersion: v1, kind: ResourceQuota, metadata: {name: full}, spec: {hard: {pods: '1'}}}")
	w.eventually("the quota is counted", func() bool { return field(w.must("resourcequotas", "full"), "status.hard") != nil })
	w.ok("install", "x", w.chart(deployment("db", "db", "  replicas: 1"), hookJob("backup", "pre-delete", "before-hook-creation", false)))
	w.exits(1, "uninstall", "x", "--timeout", "9s")
	if w.get("deployments", "db") == nil {
		t.Error("the Deployment was deleted before the hook had run")
	}
}

// TestDroppedHoldersMakeRoom: what holds something that a new object needs for itself goes right before it, with its pods.
func TestDroppedHoldersMakeRoom(t *testing.T) {
	t.Parallel()
	const onPort = "          ports: [{containerPort: 80, hostPort: %d}]\n"
	daemonSet := func(name string, port int) string {
		text := strings.ReplaceAll(deployment(name, name, ""), "kind: Deployment", "kind: DaemonSet")
		return text + fmt.Sprintf(onPort, port)
	}
	withClaim := func(name string) string {
		return deployment(name, name, "") + "      volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]\n"
	}
	claim := func(mode string) string {
		return "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {storageClassName: none, accessModes: [" + mode + "], resources: {requests: {storage: 1Gi}}}\n"
	}
	service := func(name string, port int) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec: {type: NodePort, selector: {a: b}, ports: [{port: 80, nodePort: %d}]}\n", name, port)
	}
	ingress := func(name string) string {
		return "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: " + name + "}\nspec: {rules: [{host: x.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: s, port: {number: 80}}}}]}}]}\n"
	}
	statefulSet := func(name string) string {
		return strings.ReplaceAll(deployment(name, name, "  serviceName: s"), "kind: Deployment", "kind: StatefulSet")
	}
	for name, c := range map[string]struct {
		old, next []string
		want      string // the steps that write, without names
	}{
		"host port":                {[]string{daemonSet("old", 4711)}, []string{daemonSet("new", 4711)}, "prune DaemonSet, apply"},
		"another host port":        {[]string{daemonSet("old", 4712)}, []string{daemonSet("new", 4713)}, "apply, prune DaemonSet"},
		"claim":                    {[]string{claim("ReadWriteOnce"), withClaim("old")}, []string{claim("ReadWriteOnce"), withClaim("new")}, "apply, prune Deployment, apply"},
		"claim for many":           {[]string{claim("ReadWriteMany"), withClaim("old")}, []string{claim("ReadWriteMany"), withClaim("new")}, "apply, apply, prune Deployment"},
		"Recreate":                 {[]string{deployment("old", "old", "  strategy: {type: Recreate}")}, []string{deployment("new", "new", "  strategy: {type: Recreate}")}, "prune Deployment, apply"},
		"StatefulSet":              {[]string{statefulSet("old")}, []string{statefulSet("new")}, "prune StatefulSet, apply"},
		"Ingress":                  {[]string{ingress("old")}, []string{ingress("new")}, "prune Ingress, apply"},
		"node port":                {[]string{service("old", 30083)}, []string{service("new", 30084)}, "apply, prune Service"},
		"a Deployment that serves": {[]string{deployment("old", "web", "")}, []string{deployment("new", "web", "")}, "apply, prune Deployment"},
		"what takes over a claim":  {[]string{claim("ReadWriteOnce"), withClaim("old"), deployment("web", "web", "")}, []string{claim("ReadWriteOnce"), withClaim("web")}, "apply, prune Deployment, apply"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ok("install", "x", "--wait=false", w.chart(c.old...))
			next := w.chart(c.next...)
			var got []string
			for _, s := range w.plan("x", next).stages() {
				kind, _, _ := strings.Cut(s, "/")
				got = append(got, kind)
			}
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("the plan has %q, want %q", text, c.want)
			}
			w.ok("upgrade", "x", "--wait=false", next)
			if slices.Contains(got, "prune DaemonSet") && c.want == "prune DaemonSet, apply" {
				w.ok("upgrade", "x", next) // all its pods get the port
			}
		})
	}
}

// TestRenamedDeploymentServesUntilReady: the old one is there until the new one is ready.
func TestRenamedDeploymentServesUntilReady(t *testing.T) {
	w := newWorld(t)
	service := "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n"
	w.ok("install", "x", w.chart(service, deployment("old", "web", "")))
	r := w.exits(1, "upgrade", "x", w.chart(service, replaceOnce(deployment("new", "web", "  progressDeadlineSeconds: 5"), "image: r/x:1", "image: r/x:1\n      nodeSelector: {no: where}")), "--timeout", "8s")
	if w.get("deployments", "old") == nil {
		t.Fatalf("the old one is gone before the new one is ready\n%s", r)
	}
	w.ok("upgrade", "x", w.chart(service, deployment("newer", "web", "")))
	w.there("deployments", map[string]bool{"old": false, "new": false, "newer": true})
}

// TestDroppedJudgeDoesNotHoldUpDeletions fails if a run fails because the API server hasn't noticed yet that it has deleted the
// policy that protected what it deletes too.
func TestDroppedJudgeDoesNotHoldUpDeletions(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(w *world, release, without string){
		"upgrade":   func(w *world, release, without string) { w.ok("upgrade", release, without) },
		"uninstall": func(w *world, release, _ string) { w.ok("uninstall", release) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			release := w.unique()
			policy := strings.NewReplacer("NS", w.ns, "UNIQUE", release).Replace(replaceOnce(policyOf("UNIQUE", "false"), "[CREATE, UPDATE]", "[DELETE]"))
			w.ok("install", release, w.chart(policy, labelled(configMap("gold", "1")), configMap("a", "1")))
			w.eventually("the policy protects", func() bool {
				return w.in("configmaps").Delete(w.bound(), "gold", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}) != nil
			})
			run(w, release, w.chart(configMap("a", "1")))
			w.there("configmaps", map[string]bool{"gold": false})
		})
	}
}

// TestQuotaThatIsLoweredCountsNoMoreWhatIsDropped: a quota that gets lower, or is new, comes after what is created beside what the
// chart drops.
func TestQuotaThatIsLoweredCountsNoMoreWhatIsDropped(t *testing.T) {
	t.Parallel()
	quota := func(n int) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: {count/services: '%d', services.nodeports: '%d'}}\n", n, n)
	}
	service := func(name string) string {
		return "apiVersion: v1\nkind: Service\nmetadata: {name: " + name + "}\nspec: {selector: {a: b}, ports: [{port: 80}]}\n"
	}
	for name, before := range map[string]string{"lowered": quota(9), "new": configMap("none", "")} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ok("install", "x", w.chart(before, service("a"), service("old"), service("older")))
			next := w.chart(quota(2), service("a"), service("next"))
			w.says(w.ok("plan", "x", next), "stdout", `(?s)Service/\S+/next\s+create.*ResourceQuota/\S+/q\s+(create|update)`)
			w.ok("upgrade", "x", next)
			w.there("services", map[string]bool{"a": true, "next": true, "old": false, "older": false})
		})
	}
}
