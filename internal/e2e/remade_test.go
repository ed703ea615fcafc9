package e2e

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// remake makes ConfigMap a anew by hand, as kubectl does: without ownership.
func (w *world) remake() {
	w.remove("configmaps", "a", metav1.DeleteOptions{})
	w.create("configmaps", "kubectl-create", configMap("a", "by hand"))
}

// TestRemadeByHand fails if an object of the release that somebody has made anew without ownership blocks the release, or is
// left by it, where Helm goes on: it is what the record says, unless somebody else owns it.
func TestRemadeByHand(t *testing.T) {
	t.Parallel()
	const own, strip = `{"metadata":{"labels":{"app.kubernetes.io/managed-by":%s},"annotations":{"meta.helm.sh/release-name":%s,"meta.helm.sh/release-namespace":%s}}}`, "null"
	both := configMap("a", "1") + "---\n" + configMap("b", "1")
	for name, test := range map[string]struct {
		happens func(*world)
		args    func(*world) []string
		code    int
		key     string // of a afterwards; empty when it is gone
		says    string
	}{
		"unchanged": {(*world).remake, func(w *world) []string { return []string{"upgrade", "x", w.chart(both)} }, 0, "1", `updated ConfigMap/\S+/a`},
		"changed":   {(*world).remake, func(w *world) []string { return []string{"upgrade", "x", w.chart(configMap("a", "2"))} }, 0, "2", `updated ConfigMap/\S+/a`},
		"conflict": {(*world).remake, func(w *world) []string {
			return []string{"upgrade", "x", w.chart(configMap("a", "2")), "--conflicts", "fail"}
		}, 3, "by hand", `kubectl-create`},
		"dropped":        {(*world).remake, func(w *world) []string { return []string{"upgrade", "x", w.chart(configMap("b", "1"))} }, 0, "", `deleted ConfigMap/\S+/a`},
		"uninstall":      {(*world).remake, func(*world) []string { return []string{"uninstall", "x"} }, 0, "", `deleted ConfigMap/\S+/a`},
		"roll back":      {(*world).remake, func(*world) []string { return []string{"rollback", "x", "1"} }, 0, "1", `updated ConfigMap/\S+/a`},
		"stripped":       {func(w *world) { w.patch("configmaps", "a", "kubectl-edit", fmt.Sprintf(own, strip, strip, strip)) }, func(w *world) []string { return []string{"upgrade", "x", w.chart(configMap("a", "2"))} }, 0, "2", ``},
		"half stripped":  {func(w *world) { w.patch("configmaps", "a", "kubectl-edit", disowned["half and label"]) }, func(w *world) []string { return []string{"upgrade", "x", w.chart(configMap("a", "2"))} }, 0, "2", ``},
		"half taken out": {func(w *world) { w.patch("configmaps", "a", "kubectl-edit", disowned["no name"]) }, func(*world) []string { return []string{"uninstall", "x"} }, 0, "1", `no longer belongs to a release`},
		"taken out":      {func(w *world) { w.patch("configmaps", "a", "kubectl-edit", fmt.Sprintf(own, strip, strip, strip)) }, func(*world) []string { return []string{"uninstall", "x"} }, 0, "1", `no longer belongs to a release`},
		"another's": {func(w *world) {
			w.remake()
			w.patch("configmaps", "a", "test", fmt.Sprintf(own, `"Helm"`, `"other"`, `"ns"`))
		}, func(w *world) []string { return []string{"upgrade", "x", w.chart(configMap("a", "2"))} }, 3, "by hand", `release ns/other`},
		"other tool": {func(w *world) {
			w.remake()
			w.patch("configmaps", "a", "test", `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"other"}}}`)
		}, func(w *world) []string { return []string{"upgrade", "x", w.chart(configMap("a", "2"))} }, 3, "by hand", `cannot be imported`},
		"Argo CD's": {func(w *world) {
			w.remake()
			w.patch("configmaps", "a", "argocd-controller", `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"Helm","argocd.argoproj.io/instance":"x"}}}`)
		}, func(*world) []string { return []string{"uninstall", "x"} }, 0, "by hand", `no longer belongs to a release`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ok("install", "x", w.chart(both))
			test.happens(w)
			if name == "unchanged" || name == "half stripped" {
				w.says(w.ok("plan", "x", w.chart(both)), "stdout", `somebody has made it anew, or removed its ownership`)
			}
			w.says(w.exits(test.code, test.args(w)...), "stderr", test.says)
			if a := w.get("configmaps", "a"); (a == nil) != (test.key == "") || a != nil && field(a, "data.key") != test.key {
				t.Errorf("ConfigMap/a is %v, want key %q", a, test.key)
			}
		})
	}
}

// TestHeldWhileItIsDeleted fails if an object that changes can't be deployed because somebody's finalizer holds the one that is
// being deleted: it is made again if that goes soon, and else changed as it is.
func TestHeldWhileItIsDeleted(t *testing.T) {
	t.Parallel()
	for name, soon := range map[string]bool{"goes soon": true, "stays": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			letGo := func() {
				_, _ = w.in("configmaps").Patch(w.bound(), "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			}
			w.ok("install", "x", w.chart(configMap("a", "1"), configMap("b", "1")))
			w.patch("configmaps", "a", "other", `{"metadata":{"finalizers":["example.com/x"]}}`)
			w.remove("configmaps", "a", metav1.DeleteOptions{})
			t.Cleanup(letGo)
			chart := w.chart(configMap("a", "2"), configMap("b", "2"))
			w.says(w.ok("plan", "x", chart), "stdout", `being deleted, when its finalizers are gone \(example.com/x\)`)
			if soon {
				timer := time.AfterFunc(2*time.Second, letGo)
				defer timer.Stop()
			}
			w.ok("upgrade", "x", chart)
			a := w.must("configmaps", "a")
			if isOld := a.GetDeletionTimestamp() != nil; field(a, "data.key") != "2" || isOld == soon {
				t.Errorf("ConfigMap/a has key %v, being deleted: %v", field(a, "data.key"), isOld)
			}
		})
	}
}

// TestHeldWorkloadIsNotAwaited fails if a run waits for a workload to become ready of which it has said that it goes as soon as
// somebody removes a finalizer.
func TestHeldWorkloadIsNotAwaited(t *testing.T) {
	w := newWorld(t)
	w.ok("install", "x", w.chart(deployment("web", "web", "  replicas: 0")))
	w.patch("deployments", "web", "other", `{"metadata":{"finalizers":["example.com/x"]}}`)
	w.remove("deployments", "web", metav1.DeleteOptions{})
	t.Cleanup(func() {
		_, _ = w.in("deployments").Patch(w.bound(), "web", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	})
	w.says(w.ok("upgrade", "x", w.chart(deployment("web", "web", "  replicas: 0\n  minReadySeconds: 1"))), "stderr", `example.com/x`)
}

// TestTokenMovesToAnotherAccount fails if a token Secret is lost when it gets another account: its controller deletes it then.
func TestTokenMovesToAnotherAccount(t *testing.T) {
	t.Parallel()
	account := func(name string) string {
		return "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: " + name + "}\n"
	}
	token := func(of string) string {
		return "apiVersion: v1\nkind: Secret\ntype: kubernetes.io/service-account-token\nmetadata: {name: token, annotations: {kubernetes.io/service-account.name: " + of + "}}\n"
	}
	for name, charts := range map[string][2][]string{
		"renamed": {{account("old"), token("old")}, {account("new"), token("new")}},
		"beside":  {{account("old"), account("new"), token("old")}, {account("old"), account("new"), token("new")}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ok("install", "x", w.chart(charts[0]...))
			w.eventually("the token", func() bool { return field(w.must("secrets", "token"), "data.token") != nil })
			w.says(w.ok("upgrade", "x", w.chart(charts[1]...)), "stderr", `recreated Secret/`)
			w.eventually("the token of the other account", func() bool { return field(w.must("secrets", "token"), "data.token") != nil })
			w.ok("rollback", "x", "1")
			w.eventually("the token of the first account", func() bool { return field(w.must("secrets", "token"), "data.token") != nil })
		})
	}
}

// TestUninstallOfWhatAFinalizerHolds fails if a release can't be uninstalled because of a finalizer that nobody removes.
func TestUninstallOfWhatAFinalizerHolds(t *testing.T) {
	w := newWorld(t)
	w.ok("install", "x", w.chart(configMap("a", "1"), configMap("b", "1")))
	w.patch("configmaps", "a", "other", `{"metadata":{"finalizers":["example.com/x"]}}`)
	t.Cleanup(func() {
		_, _ = w.in("configmaps").Patch(w.bound(), "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	})
	r := w.ok("uninstall", "x", "--timeout", "2s")
	w.says(r, "stderr", `ConfigMap/\S+/a: still exists, being deleted: waiting for finalizer example.com/x: .*kubectl -n \S+ patch configmap a`)
	w.there("configmaps", map[string]bool{"b": false})
	w.exits(1, "status", "x")
}

// TestQuotaGrowsForSeveral fails if the objects for which the release raises a quota are refused because it isn't counted yet:
// a dry run tries each of them alone, and finds room.
func TestQuotaGrowsForSeveral(t *testing.T) {
	w := newWorld(t)
	quota := func(n int) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: {services: %d}}\n", n)
	}
	service := func(name string) string {
		return "apiVersion: v1\nkind: Service\nmetadata: {name: " + name + "}\nspec: {ports: [{port: 80}]}\n"
	}
	w.ok("install", "x", w.chart(quota(2), service("a")))
	more := []string{quota(6), service("a")}
	for i := range 5 {
		more = append(more, service(fmt.Sprintf("more-%d", i)))
	}
	w.ok("upgrade", "x", w.chart(more...))
}
