package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"deployer/internal/kubetest"
)

// TestDroppedObjectsGoWhenTheWaitIsStuckForThem fails if a new object waits until the time-out for what an object has that
// the chart dropped and that is deleted after the wait.
func TestDroppedObjectsGoWhenTheWaitIsStuckForThem(t *testing.T) {
	t.Parallel()
	const nextTo = "      nodeSelector: {kubernetes.io/hostname: node-0}\n"
	for name, c := range map[string]struct{ quota, old, next, lacks string }{
		"quota": {
			quota: "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: {pods: \"1\"}}\n",
			old:   deployment("old", "web", ""), next: deployment("new", "web", ""), lacks: "exceeded quota",
		},
		"anti-affinity": {
			old: deployment("old", "old", "") + nextTo,
			next: deployment("new", "new", "") + nextTo + "      affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: " +
				"[{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: old}}}]}}\n",
			lacks: "anti-affinity",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if c.quota != "" {
				w.create("resourcequotas", "admin", c.quota)
				w.eventually("the quota counts", func() bool { return field(w.must("resourcequotas", "q"), "status.used") != nil })
			}
			w.ok("install", "x", w.chart(c.old, configMap("served", "1")))
			w.says(w.ok("upgrade", "x", w.chart(c.next)), "stderr", "Deployment/"+w.ns+"/old: deleted before Deployment/"+w.ns+"/new was ready", c.lacks)
			w.there("deployments", map[string]bool{"old": false, "new": true})
			w.there("configmaps", map[string]bool{"served": false})
		})
	}
}

// TestDroppedNetworkPolicyGoesBeforeTheWaitEnds fails if what the chart brings isn't ready for a NetworkPolicy that it dropped, and
// that goes only when all is ready.
func TestDroppedNetworkPolicyGoesBeforeTheWaitEnds(t *testing.T) {
	w := newWorld(t)
	const policy = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: closed}\nspec: {podSelector: {}}\n"
	w.ok("install", "x", w.chart(policy, configMap("served", "1")))
	cutOff := deployment("web", "web", "") + "      terminationGracePeriodSeconds: 1\n"
	cutOff = replaceOnce(cutOff, "      labels: {app: web}\n", "      labels: {app: web}\n      annotations: {sim.deployer/steps: '[{\"rc\":1,\"state\":{\"waiting\":{\"reason\":\"CrashLoopBackOff\"}},\"last\":{\"terminated\":{\"exitCode\":1,\"reason\":\"Error\"}}}]'}\n")
	w.says(w.exits(1, "upgrade", "x", w.chart(cutOff), "--timeout", "60s"), "stderr", `NetworkPolicy/\S+/closed: deleted before Deployment/\S+/web was ready, which may wait for traffic`)
	w.there("configmaps", map[string]bool{"served": true})
}

// TestWhatMayNotBeDeletedStays fails if a release fails because a policy denies deleting what the chart dropped, which Helm leaves
// in silence.
func TestWhatMayNotBeDeletedStays(t *testing.T) {
	w := newWorld(t)
	w.cluster.Since(w, "1.30", "ValidatingAdmissionPolicies")
	rest := configMap("a", "1")
	w.ok("install", "x", w.chart(rest, labelled(configMap("guarded", "1"))))
	policy, binding, _ := strings.Cut(strings.NewReplacer("NS", w.ns, "UNIQUE", w.unique(), "[CREATE, UPDATE]", "[DELETE]").Replace(policyOf("UNIQUE", "false")), "---\n")
	w.create("validatingadmissionpolicies", "admin", policy)
	w.create("validatingadmissionpolicybindings", "admin", binding)
	free := func() {
		_ = w.in("validatingadmissionpolicybindings").Delete(w.bound(), w.unique(), metav1.DeleteOptions{})
		_ = w.in("validatingadmissionpolicies").Delete(w.bound(), w.unique(), metav1.DeleteOptions{})
	}
	w.Cleanup(free)
	mayDelete := func() bool {
		return w.in("configmaps").Delete(w.Context(), "guarded", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}) == nil
	}
	w.eventually("the policy acts", func() bool { return !mayDelete() })
	next := w.chart(rest)
	w.says(w.ok("upgrade", "x", next), "stderr", `ConfigMap/\S+/guarded: it stays, and the next release tries again: .*denied request`)
	w.there("configmaps", map[string]bool{"a": true, "guarded": true})
	w.exits(1, "uninstall", "x")
	free()
	w.eventually("the policy is gone", mayDelete)
	w.ok("upgrade", "x", next)
	w.there("configmaps", map[string]bool{"a": true, "guarded": false})
}

// TestDroppedParameterGoesFirst: an object by which a policy judges is gone before what is judged.
func TestDroppedParameterGoesFirst(t *testing.T) {
	w := newWorld(t)
	w.keepParametersWatched("ConfigMap")
	policy := func(name string) string {
		return strings.NewReplacer("NS", w.ns, "UNIQUE", w.unique(), "name: param,", "name: "+name+",").Replace(policyBy("ConfigMap", "params.data.key == '1'"))
	}
	w.ok("install", "x", "--wait=false", w.chart(policy("rules"), configMap("rules", "1"), configMap("other", "1")))
	plan := w.plan("x", w.chart(policy("more"), labelled(configMap("a", "1"))))
	if got, want := strings.Join(plan.stages(), ", "), fmt.Sprintf("prune ConfigMap/%[1]s/rules, apply, apply, prune ConfigMap/%[1]s/other", w.ns); got != want {
		t.Errorf("the plan has %s, want %s", got, want)
	}
	w.ok("uninstall", "x")
}

// TestNobodyWaitsForWhatDoesNotChange fails if a run waits for an object that others hold and that is as the chart has it.
func TestNobodyWaitsForWhatDoesNotChange(t *testing.T) {
	w := newWorld(t)
	chart := w.chart(configMap("held", "1"), configMap("a", "{{ .Values.v }}"))
	w.helm("install", "x", chart, "--set", "v=1")
	w.patch("configmaps", "held", "other", `{"metadata":{"finalizers":["example.com/hold"]}}`)
	w.remove("configmaps", "held", metav1.DeleteOptions{})
	w.Cleanup(func() {
		_, _ = w.in("configmaps").Patch(w.bound(), "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	})
	r := w.ok("upgrade", "x", chart, "--set", "v=2", "--timeout", "20s")
	w.says(r, "stderr", `ConfigMap/\S+/held: it is being deleted, when its finalizers are gone \(example.com/hold\)`)
	if n := strings.Count(r.err, "it is being deleted"); n != 1 {
		t.Errorf("it is said %d times\n%s", n, r)
	}
	if r.took > 15*time.Second {
		t.Errorf("it took %s", r.took)
	}
	if got := field(w.must("configmaps", "a"), "data.key"); got != "2" {
		t.Errorf("ConfigMap/a has %v", got)
	}
}

// TestWhatVanishedIsNotDeployed fails if a release counts as deployed although somebody has deleted an object of it meanwhile.
func TestWhatVanishedIsNotDeployed(t *testing.T) {
	w := newWorld(t)
	chart := w.chart(configMap("a", "1"), configMap("b", "1"), configMap("c", "1"), configMap("d", "1"), replaceOnce(deployment("web", "web", "  minReadySeconds: 2"), "image: r/x:1", "image: r/x:{{ .Values.v }}"))
	stop := make(chan struct{})
	gone := make(chan struct{})
	go func() { // somebody
		defer close(gone)
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
				_ = w.in("configmaps").Delete(w.bound(), "b", metav1.DeleteOptions{})
			}
		}
	}()
	w.says(w.exits(1, "install", "x", chart, "--set", "v=1"), "stderr", `another client has deleted ConfigMap/\S+/b since it was applied`)
	close(stop)
	<-gone
	w.statuses("x", "failed")
	w.ok("upgrade", "x", chart, "--set", "v=2")
	w.there("configmaps", map[string]bool{"a": true, "b": true})
	w.statuses("x", "failed", "deployed")
}

// TestWhatAJobDeletesComesBack fails if a release fails because a Job of it has deleted an object beside it.
func TestWhatAJobDeletesComesBack(t *testing.T) {
	w := newWorld(t)
	rest := []string{configMap("a", "1"), deployment("web", "web", "")}
	w.ok("install", "x", w.chart(rest...))
	w.whenJobRuns("clean", func() {
		w.remove("configmaps", "a", metav1.DeleteOptions{})
		w.remove("deployments", "web", metav1.DeleteOptions{})
	})
	w.ok("upgrade", "x", w.chart(append(rest, job("clean", "a: b", `[{"phase":"Succeeded","state":{"terminated":{"exitCode":0,"reason":"Completed"}}}]`, "r/x:1"))...), "--wait=false")
	w.there("configmaps", map[string]bool{"a": true})
	w.there("deployments", map[string]bool{"web": true})
	w.statuses("x", "superseded", "deployed")
}

// TestAccessIsNarrowedAfterWhatAJobDeleted fails if what the account loses by an upgrade is forgotten when a Job of the release has deleted
// an object beside it, so that the rest is planned again.
func TestAccessIsNarrowedAfterWhatAJobDeleted(t *testing.T) {
	w := newWorld(t)
	rbac := func(resources string) string {
		return "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: a}\nrules: [{apiGroups: [\"\"], resources: [" + resources + "], verbs: [\"*\"]}]\n---\n" +
			"apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: a}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}\n" +
			"subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: \"system:authenticated\"}]\n"
	}
	w.ok("install", "x", w.chart(rbac("configmaps, services"), configMap("b", "1")))
	w.whenJobRuns("clean", func() { w.remove("configmaps", "b", metav1.DeleteOptions{}) })
	clean := job("clean", "a: b", `[{"phase":"Succeeded","state":{"terminated":{"exitCode":0,"reason":"Completed"}}}]`, "r/x:1")
	next := w.chart(rbac("services"), configMap("b", "1"), clean)
	w.says(w.ok("plan", "x", next), "stdout", `Role/\S+\s+update: at the very end`)
	w.ok("upgrade", "x", next, "--wait=false")
	w.there("configmaps", map[string]bool{"b": true})
	w.says(w.ok("plan", "x", next), "stdout", "No changes")
}

// TestWhatIsCleanedUpIsDeployed fails if a release fails because a controller has deleted a custom resource that had finished.
func TestWhatIsCleanedUpIsDeployed(t *testing.T) {
	w := newWorld(t)
	name := w.unique()
	w.dropCRD("widgets." + name + ".deployer.io")
	chart := w.chartOf(map[string]string{
		"crds/widgets.yaml":   replaceOnce(widgetCRD(name), "size: {type: integer}", "ttlSecondsAfterFinished: {type: integer}"),
		"templates/work.yaml": replaceOnce(widget(name), "size: 1", "ttlSecondsAfterFinished: 1"),
		"templates/last.yaml": replaceOnce(configMap("last", "1"), "name: last", "name: last\n  annotations: {deployer.io/weight: \"5\"}"),
	})
	held := w.hold(applies("last"), "install", "x", chart).must()
	widgets := w.cluster.Dynamic().Resource(schema.GroupVersionResource{Group: name + ".deployer.io", Version: "v1", Resource: "widgets"})
	if err := widgets.Namespace(w.ns).Delete(w.Context(), "w", metav1.DeleteOptions{}); err != nil { // its controller
		t.Fatal(err)
	}
	w.succeeds(held.rest())
	w.statuses("x", "deployed")
}

// TestReleaseRemovesItsOwnAccountLast: the RoleBinding by which the run acts goes when all else is gone.
func TestReleaseRemovesItsOwnAccountLast(t *testing.T) {
	w := newWorld(t)
	user := w.cluster.User(t, w.ns, kubetest.Rule("", "*", "secrets", "services"), kubetest.Rule("coordination.k8s.io", "*", "leases"),
		kubetest.Rule("rbac.authorization.k8s.io", "*", "roles", "rolebindings"))
	role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: a}\nrules: [{apiGroups: [\"\"], resources: [configmaps], verbs: [\"*\"]}]\n"
	binding := "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: a}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}\n" +
		"subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: \"" + user.Name + "\"}]\n"
	w.ok("install", "x", "--wait=false", w.chart(role, binding, configMap("a", "1"), configMap("b", "1")))
	w.kubeconfig = user.Kubeconfig(t, w.ns)
	w.says(w.ok("plan", "--uninstall", "x"), "stdout", `are gone.*RoleBinding/\S+/a\s+delete: [^\n]*at the very end`)
	w.ok("uninstall", "x")
	w.kubeconfig = w.user.Kubeconfig(t, w.ns)
	w.nothingLeft()
}

// TestReleaseNarrowsItsOwnAccessLast: what the account loses by an upgrade, it has until that is done.
func TestReleaseNarrowsItsOwnAccessLast(t *testing.T) {
	t.Parallel()
	const rbac = "apiVersion: rbac.authorization.k8s.io/v1\nkind: "
	role := func(kind, name, resources string) string {
		return rbac + kind + "\nmetadata: {name: \"" + name + "\"}\nrules: [{apiGroups: [\"\"], resources: [" + resources + "], verbs: [\"*\"]}]\n"
	}
	binding := func(name, kind, role, user string) string {
		return rbac + "RoleBinding\nmetadata: {name: " + name + "}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: " + kind + ", name: \"" + role + "\"}\n" +
			"subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: \"" + user + "\"}]\n"
	}
	for name, c := range map[string]func(w *world, user string) (from, to []string){
		"role": func(w *world, user string) (from, to []string) {
			return []string{role("Role", "a", "configmaps, services"), binding("a", "Role", "a", user)}, []string{role("Role", "a", "services"), binding("a", "Role", "a", user)}
		},
		"binding": func(w *world, user string) (from, to []string) {
			return []string{role("Role", "a", "configmaps"), binding("a", "Role", "a", user)}, []string{role("Role", "a", "configmaps"), binding("a", "Role", "a", "somebody")}
		},
		"cluster role": func(w *world, user string) (from, to []string) {
			return []string{role("ClusterRole", w.ns, "configmaps, pods"), binding("a", "ClusterRole", w.ns, user)}, []string{role("ClusterRole", w.ns, "pods"), binding("a", "ClusterRole", w.ns, user)}
		},
		"account": func(w *world, user string) (from, to []string) {
			account := "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: " + user[strings.LastIndex(user, ":")+1:] + "}\n"
			return []string{role("Role", "a", "configmaps"), binding("a", "Role", "a", user), account}, []string{role("Role", "a", "configmaps"), binding("a", "Role", "a", "somebody")}
		},
		"role whose binding goes": func(w *world, user string) (from, to []string) {
			return []string{role("Role", "a", "configmaps, services"), binding("a", "Role", "a", user)}, []string{role("Role", "a", "services")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			user := w.cluster.User(t, w.ns, kubetest.Rule("", "*", "secrets"), kubetest.Rule("coordination.k8s.io", "*", "leases"),
				kubetest.Rule("rbac.authorization.k8s.io", "*", "roles", "rolebindings"), kubetest.Rule("", "*", "serviceaccounts"))
			user.Allow(t, "", kubetest.Rule("rbac.authorization.k8s.io", "*", "clusterroles"))
			from, to := c(w, user.Name)
			w.ok("install", "x", "--wait=false", "--take-ownership", w.chart(append(from, configMap("z", "1"), configMap("gone", "1"))...))
			w.kubeconfig = user.Kubeconfig(t, w.ns)
			next := w.chart(append(to, configMap("z", "2"))...)
			plan := w.ok("plan", "x", next)
			w.says(plan, "stdout", `(?s)ConfigMap/\S+/z.*ConfigMap/\S+/gone\s+delete.*(Role|RoleBinding)/\S+\s+update: at the very end`)
			if name == "account" {
				w.says(plan, "stdout", `ServiceAccount/\S+\s+delete: [^\n]*at the very end`)
			}
			w.ok("upgrade", "x", next)
			w.kubeconfig = w.user.Kubeconfig(t, w.ns)
			if got := field(w.must("configmaps", "z"), "data.key"); got != "2" {
				t.Errorf("the ConfigMap has %v", got)
			}
			w.there("configmaps", map[string]bool{"gone": false})
			w.says(w.ok("plan", "x", next), "stdout", "No changes")
		})
	}
}
