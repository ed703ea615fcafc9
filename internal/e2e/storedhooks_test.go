package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reachingHook is a hook outside of the release's namespace: a ClusterRole, or in the
// namespace of that name a ConfigMap.
func reachingHook(name, namespace, events string) string {
	kind, place := "rbac.authorization.k8s.io/v1\nkind: ClusterRole", ""
	if namespace != "" {
		kind, place = "v1\nkind: ConfigMap", "\n  namespace: "+namespace
	}
	return "apiVersion: " + kind + "\nmetadata:\n  name: " + name + place + "\n  annotations:\n    helm.sh/hook: " + events +
		"\n    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded\n"
}

// TestStoredHooksNeedConsent: who may write Secrets in a namespace may write hooks into
// records, which then would run with the rights of who uninstalls.
func TestStoredHooksNeedConsent(t *testing.T) {
	w := newWorld(t)
	other := w.beside()
	events := "pre-delete,post-rollback"
	role := w.unique()
	objects := []string{configMap("a", "1"), reachingHook(role, "", events), reachingHook("c", other.ns, events), hookJob("own", events, "before-hook-creation", false)}
	w.ok("install", "x", w.chart(objects...))
	w.ok("upgrade", "x", w.chart(configMap("a", "2")), "--allow-stored-hooks")

	for _, args := range [][]string{{"rollback", "x", "1"}, {"rollback", "x", "1", "--dry-run"}, {"plan", "--rollback", "x", "1"}} {
		mark := w.mark()
		r := w.exits(3, args...)
		w.says(r, "stderr", `revision 1 of release x has hooks that reach outside of namespace `+w.ns,
			`ClusterRole/`+role+`: is cluster-scoped`, `ConfigMap/`+other.ns+`/c: is in another namespace`, `--allow-stored-hooks`)
		if strings.Contains(r.err, "Job/") {
			t.Errorf("the hook in the release's namespace is named:\n%s", r)
		}
		if made := w.allWrites(mark); len(made) > 0 {
			t.Errorf("%v wrote %v", args, made)
		}
	}
	w.statuses("x", "superseded", "deployed")
	w.ok("rollback", "x", "1", "--allow-stored-hooks")

	w.exits(3, "uninstall", "x")
	w.exits(3, "plan", "--uninstall", "x")
	w.statuses("x", "superseded", "superseded", "deployed")
	mark := w.mark()
	w.ok("uninstall", "x", "--allow-stored-hooks")
	ran := map[string]bool{}
	for _, e := range w.allWrites(mark) {
		if e.Verb == "create" {
			ran[e.Object.Resource+"/"+e.Object.Name] = true
		}
	}
	if !ran["clusterroles/"+role] || !ran["configmaps/c"] {
		t.Errorf("with consent, %v were created", ran)
	}
}

// TestStoredTestsNeedConsent: the tests of a release run as recorded, too.
func TestStoredTestsNeedConsent(t *testing.T) {
	w := newWorld(t)
	role := w.unique()
	w.ok("install", "x", w.chart(configMap("a", "1"), reachingHook(role, "", "test"), hookJob("own", "test", "before-hook-creation", false)))
	mark := w.mark()
	r := w.exits(3, "test", "x")
	w.says(r, "stderr", `ClusterRole/`+role+`: is cluster-scoped`, `--allow-stored-hooks`, `--filter '!name=TEST'`)
	if made := w.allWrites(mark); len(made) > 0 {
		t.Errorf("test wrote %v", made)
	}
	w.ok("test", "x", "--filter", "!name="+role)
	mark = w.mark()
	w.ok("test", "x", "--allow-stored-hooks")
	if made := fmt.Sprint(w.allWrites(mark)); !strings.Contains(made, role) {
		t.Errorf("with consent, the test didn't run: %s", made)
	}
}

// TestNoHooksNeedNoConsent: what isn't run can't do anything.
func TestNoHooksNeedNoConsent(t *testing.T) {
	w := newWorld(t)
	w.ok("install", "x", w.chart(configMap("a", "1"), reachingHook(w.unique(), "", "pre-delete")))
	w.ok("uninstall", "x", "--no-hooks")
	w.nothingLeft()
}

// TestAtomicRunsNoStoredHooks: what undoes a failed run can't ask. It leaves out what only
// the record has, and runs what the chart at hand has too.
func TestAtomicRunsNoStoredHooks(t *testing.T) {
	w := newWorld(t)
	stored, same := w.unique()+"-stored", w.unique()+"-same"
	both := reachingHook(same, "", "pre-rollback")
	w.ok("install", "x", w.chart(configMap("a", "1"), both, reachingHook(stored, "", "pre-rollback")))
	mark := w.mark()
	r := w.exits(6, "upgrade", "x", w.chart(configMap("a", "2"), both, hookJob("fails", "post-upgrade", "before-hook-creation", true)), "--atomic")
	w.says(r, "stderr", `ClusterRole/`+stored+`: is cluster-scoped`, `They are not run`)
	ran := map[string]bool{}
	for _, e := range w.allWrites(mark) {
		ran[e.Object.Name] = true
	}
	if ran[stored] || !ran[same] {
		t.Errorf("the hook that only the record has ran: %t; the chart's: %t", ran[stored], ran[same])
	}
}

// TestStoredObjectsNeedConsent: a rollback doesn't create a ClusterRole that only the record of its target has, where somebody
// may have written it. What another revision has too is no question.
func TestStoredObjectsNeedConsent(t *testing.T) {
	w := newWorld(t)
	role := func(name string) string {
		return "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: " + name + "}\n"
	}
	once, twice := w.unique()+"-once", w.unique()+"-twice"
	w.ok("install", "x", w.chart(configMap("a", "1"), role(twice)))
	w.ok("upgrade", "x", w.chart(configMap("a", "2"), role(twice), role(once)))
	w.ok("upgrade", "x", w.chart(configMap("a", "3")))
	r := w.exits(3, "rollback", "x", "2")
	w.says(r, "stderr", "revision 2 of release x would create objects outside of namespace "+w.ns, "ClusterRole/"+once, "--allow-stored-hooks")
	if strings.Contains(r.err, twice) {
		t.Errorf("an object that two revisions have is asked about:\n%s", r)
	}
	w.statuses("x", "superseded", "superseded", "deployed")
	w.ok("rollback", "x", "1")
	w.ok("rollback", "x", "2", "--allow-stored-hooks")
	w.ok("uninstall", "x")
}

// TestRecordsThatAreElsewhere: Flux stores the record in the namespace of its HelmRelease. Such a release is listed and shown as
// what it is, and left to Flux.
func TestRecordsThatAreElsewhere(t *testing.T) {
	w := newWorld(t)
	other := w.beside()
	chart := other.chart(configMap("a", "1"))
	other.helm("install", "x", chart)
	record := other.must("secrets", "sh.helm.release.v1.x.v1")
	moved := record.DeepCopy()
	moved.SetNamespace(w.ns)
	moved.SetResourceVersion("")
	moved.SetUID("")
	moved.SetManagedFields(nil)
	if _, err := w.in("secrets").Create(t.Context(), moved, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := other.in("secrets").Delete(t.Context(), record.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.says(w.ok("list"), "stdout", `x\s+`+other.ns+`\s+1\s.*deployed\s+c-1.0.0`)
	w.says(w.ok("history", "x"), "stdout", `1\s.*deployed\s+c-1.0.0`)
	w.says(w.ok("status", "x", "--show-resources"), "stdout", "NAMESPACE: "+other.ns, "ConfigMap/"+other.ns+"/a")
	for _, args := range [][]string{{"upgrade", "x", chart}, {"rollback", "x", "1"}, {"uninstall", "x"}, {"plan", "x", chart}, {"test", "x"}} {
		r := w.exits(1, args...)
		w.says(r, "stderr", "stored in namespace "+w.ns+", but its objects are in namespace "+other.ns)
		if strings.Contains(r.err, "delete secret") {
			t.Errorf("it advises to delete the record:\n%s", r)
		}
	}
	w.statuses("x", "deployed")
	other.must("configmaps", "a")
}
