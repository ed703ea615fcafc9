package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/internal/helmtest"
	"deployer/internal/kubetest"
)

// applies is the first call that changes a ConfigMap.
func applies(name string) func(int, call) bool { return writes("PATCH", "/configmaps/"+name) }

// afterTheOther runs a command that waits for a held run: it has decided, and
// stands in the queue, when the held one goes on.
func (h *held) afterTheOther(w *world, args ...string) (first, second result) {
	h.Helper()
	waits := w.hold(queues(), append(args, "--lock-timeout", "1m")...).must()
	first = h.rest()
	return first, waits.rest()
}

// succeeds checks exit codes.
func (w *world) succeeds(results ...result) {
	w.Helper()
	for _, r := range results {
		if r.code != 0 {
			w.Errorf("want exit code 0:\n%s", r)
		}
	}
}

// value checks what a ConfigMap has; "" means that it isn't there.
func (w *world) value(name, want string) {
	w.Helper()
	obj := w.get("configmaps", name)
	got := ""
	if obj != nil {
		got, _ = field(obj, "data.key").(string)
	}
	if got != want {
		w.Errorf("ConfigMap/%s has key %q, want %q", name, got, want)
	}
}

// A run that decided while another had applied the half decides again: what was
// as it should be then isn't any more, and what the other made goes.
func TestWhoWaitedDecidesAgain(t *testing.T) {
	w := newWorld(t)
	one := w.chart(configMap("a", "1"), configMap("b", "1"))
	w.ok("install", "x", one)
	first := w.hold(applies("a"), "upgrade", "x", w.chart(configMap("a", "2"), configMap("b", "2"), configMap("c", "2"))).must()
	r1, r2 := first.afterTheOther(w, "upgrade", "x", one)
	w.succeeds(r1, r2)
	w.value("a", "1")
	w.value("b", "1")
	w.value("c", "")
	w.statuses("x", "superseded", "superseded", "deployed")
}

// What is rejected because of another run is decided again: by its end, if it has ended by
// then. Else it is told that the other run is at it.
func TestRejectedBecauseOfAnotherRun(t *testing.T) {
	t.Parallel()
	t.Run("which has ended", func(t *testing.T) {
		w := newWorld(t)
		recreate := deployment("d", "d", "  strategy: {type: Recreate}")
		w.ok("install", "x", w.chart(recreate), "--wait=false")
		dryRun := func(_ int, c call) bool { return c.method == "PATCH" && strings.Contains(c.path, "/deployments/d?") }
		second := w.hold(dryRun, "upgrade", "x", w.chart(replaceOnce(recreate, "r/x:1", "r/x:2")), "--wait=false").must()
		// Its strategy is another by default, which can't be replaced without knowing of it.
		w.ok("upgrade", "x", w.chart(deployment("d", "d", "")), "--wait=false")
		w.succeeds(second.rest())
		w.statuses("x", "superseded", "superseded", "deployed")
	})
	t.Run("which hasn't", func(t *testing.T) {
		w := newWorld(t)
		w.ok("install", "x", w.chart(configMap("a", "1")))
		first := w.hold(applies("a"), "upgrade", "x", w.chart(configMap("a", "2"))).must()
		w.exits(5, "upgrade", "x", w.chart(configMap("Not_A_Name", "3")))
		w.succeeds(first.rest())
	})
}

// The values that count again are those of the run that was waited for.
func TestReusedValuesAreThoseOfTheOtherRun(t *testing.T) {
	w := newWorld(t)
	dir := w.chart("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {key: \"{{ .Values.one }}-{{ .Values.two }}\"}\n")
	w.ok("install", "x", dir, "--set", "one=0,two=0")
	first := w.hold(applies("a"), "upgrade", "x", dir, "--reuse-values", "--set", "one=1").must()
	r1, r2 := first.afterTheOther(w, "upgrade", "x", dir, "--reuse-values", "--set", "two=2")
	w.succeeds(r1, r2)
	w.value("a", "1-2")
}

// Prevents that an upgrade after a failed revision loses values or labels that Helm keeps. Helm's version is pinned: make test-long is often enough for it.
func TestValuesAndLabelsOfAFailedRevision(t *testing.T) {
	const one, two = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {key: \"{{ .Values.one }}-{{ .Values.two }}\"}\n", "one: defaults\ntwo: defaults\n"
	w := newWorld(t)
	good := w.chartOf(map[string]string{"values.yaml": two, "templates/a.yaml": one})
	bad := w.chartOf(map[string]string{"values.yaml": two, "templates/a.yaml": one, "templates/b.yaml": hookJob("fails", "post-install,post-upgrade", "hook-failed", true)})
	for name, of := range map[string]struct {
		before []string // deployed
		failed []string
		then   []string
		value  string
		labels string
	}{
		"first, no values": {failed: []string{"--set", "one=1", "--labels", "team=a"}, value: "1-defaults", labels: "a/"},
		"first, values":    {failed: []string{"--set", "one=1"}, then: []string{"--set", "two=2"}, value: "defaults-2", labels: "/"},
		"first, reuse":     {failed: []string{"--set", "one=1"}, then: []string{"--reuse-values", "--set", "two=2", "--labels", "tier=b"}, value: "1-2", labels: "/b"},
		"first, then":      {failed: []string{"--set", "one=1"}, then: []string{"--reset-then-reuse-values", "--set", "two=2"}, value: "1-2", labels: "/"},
		"first, reset":     {failed: []string{"--set", "one=1", "--labels", "team=a"}, then: []string{"--reset-values", "--labels", "team=null"}, value: "defaults-defaults", labels: "/"},
		"second": {
			before: []string{"--set", "one=0", "--labels", "team=a"}, failed: []string{"--set", "one=1", "--labels", "tier=b"},
			value: "0-defaults", labels: "a/b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, program := range []string{deployerBinary, helmtest.Helm3(t)} {
				if program != deployerBinary && os.Getenv(longEnv) == "" {
					continue
				}
				w := w.beside()
				w.T = t
				install := []string{"upgrade", "x", "--install"}
				revision := 2
				if of.before != nil {
					w.run(program, 0, slices.Concat(install, []string{good}, of.before)...)
					revision++
				}
				w.run(program, 1, slices.Concat(install, []string{bad}, of.failed)...)
				w.run(program, 0, slices.Concat([]string{"upgrade", "x", good}, of.then)...)
				w.value("a", of.value)
				labels := w.must("secrets", fmt.Sprintf("sh.helm.release.v1.x.v%d", revision)).GetLabels()
				if got := labels["team"] + "/" + labels["tier"]; got != of.labels {
					t.Errorf("%s: labels %q, want %q", program, got, of.labels)
				}
			}
		})
	}
}

// A rollback during an upgrade goes back behind it.
func TestRollbackDuringAnUpgrade(t *testing.T) {
	w := newWorld(t)
	w.ok("install", "x", w.chart(configMap("a", "1")))
	w.ok("upgrade", "x", w.chart(configMap("a", "2")))
	first := w.hold(applies("a"), "upgrade", "x", w.chart(configMap("a", "3"), configMap("c", "3"))).must()
	r1, r2 := first.afterTheOther(w, "rollback", "x")
	w.succeeds(r1, r2)
	w.value("a", "2")
	w.value("c", "")
	w.statuses("x", "superseded", "superseded", "superseded", "deployed")
}

// Uninstalled and installed again in between, a release has the same revision and
// is another.
func TestUninstalledAndInstalledAgainMeanwhile(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]func(int, call) bool{
		"before the lock":   writes("POST", "/leases"),
		"before the render": func(_ int, c call) bool { return strings.HasPrefix(c.path, "/version") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ok("install", "x", w.chart(configMap("a", "1"), configMap("b", "1")))
			first := w.hold(at, "upgrade", "x", w.chart(configMap("a", "1"), configMap("b", "2"))).must()
			w.ok("uninstall", "x")
			w.ok("install", "x", w.chart(configMap("a", "other"), configMap("c", "other")))
			w.succeeds(first.rest())
			w.value("a", "1")
			w.value("b", "2")
			w.value("c", "")
			w.statuses("x", "superseded", "deployed")
		})
	}
}

// An upgrade --install --atomic that fails goes back to what the first install,
// which was pending when it began, has made.
func TestUndoLeavesTheOthersInstall(t *testing.T) {
	w := newWorld(t)
	good := w.chart(configMap("a", "1"), configMap("b", "1"))
	first := w.hold(applies("a"), "install", "x", good).must()
	bad := w.chart(configMap("a", "2"), hookJob("fails", "post-upgrade,post-install", "before-hook-creation", true))
	r1, r2 := first.afterTheOther(w, "upgrade", "--install", "--atomic", "x", bad)
	w.succeeds(r1)
	if r2.code != 6 {
		t.Errorf("want exit code 6:\n%s", r2)
	}
	w.value("a", "1")
	w.value("b", "1")
	w.statuses("x", "superseded", "failed", "deployed")
}

// Who may wait decides when the other is done, also what can't be decided before.
func TestWhoMayWaitIsntRefusedBefore(t *testing.T) {
	w := newWorld(t)
	one := w.chart(configMap("a", "1"))
	t.Run("install after uninstall", func(t *testing.T) {
		w := w.beside()
		w.T = t
		w.ok("install", "x", one)
		first := w.hold(writes("DELETE", "/configmaps/a"), "uninstall", "x").must()
		r1, r2 := first.afterTheOther(w, "install", "x", one)
		w.succeeds(r1, r2)
		w.value("a", "1")
		w.statuses("x", "deployed")
	})
	t.Run("install after uninstall that ends meanwhile", func(t *testing.T) {
		w := w.beside()
		w.T = t
		w.ok("install", "x", one)
		first := w.hold(writes("DELETE", "/configmaps/a"), "uninstall", "x").must()
		looks := func(_ int, c call) bool { return c.method == "GET" && strings.Contains(c.path, "/leases/deployer-") }
		second := w.hold(looks, "install", "x", one).must()
		w.succeeds(first.rest(), second.rest())
		w.value("a", "1")
		w.statuses("x", "deployed")
	})
	t.Run("upgrade after install", func(t *testing.T) {
		w := w.beside()
		w.T = t
		first := w.hold(writes("POST", "/secrets"), "install", "x", one).must()
		r1, r2 := first.afterTheOther(w, "upgrade", "x", w.chart(configMap("a", "2")))
		w.succeeds(r1, r2)
		w.value("a", "2")
		w.statuses("x", "superseded", "deployed")
	})
}

// newNamespace is the name of a namespace that isn't there, and that goes with the
// test.
func (w *world) newNamespace() string {
	name := w.ns + "-new"
	w.Cleanup(func() {
		_ = w.cluster.Client().CoreV1().Namespaces().Delete(context.WithoutCancel(w.Context()), name, metav1.DeleteOptions{})
	})
	return name
}

// namespaceGone checks that a namespace is gone, or going, without a word about
// what was looked at for that.
func (w *world) namespaceGone(name string, r result) {
	w.Helper()
	if ns := w.get("namespaces", name); ns != nil && ns.GetDeletionTimestamp() == nil {
		w.Errorf("Namespace/%s is left:\n%s", name, r)
	}
	if strings.Contains(r.err, "deprecated") {
		w.Errorf("it warns of what the release doesn't have:\n%s", r)
	}
}

// A namespace that was made for a release of which there is no record goes again.
func TestNamespaceMadeInVainGoes(t *testing.T) {
	t.Parallel()
	stops := map[string]point{
		"a signal when it was just made": at(after, "POST", "/namespaces", 0),
		"a signal before the lock":       at(before, "POST", "/leases", 0),
		"a signal after the lock":        at(after, "POST", "/leases", 0),
		"a signal before the record":     at(before, "POST", "/secrets", 0),
	}
	for name, at := range stops {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p, ns := w.proxied(), w.newNamespace()
			r := w.struck(p, fate{at: at.at, when: at.when}, syscall.SIGTERM, "install", "x", w.chart(configMap("a", "1")), "-n", ns, "--create-namespace")
			if r.code != 143 {
				t.Errorf("want exit code 143:\n%s", r)
			}
			w.namespaceGone(ns, r)
		})
	}
	t.Run("a rejection", func(t *testing.T) {
		w := newWorld(t)
		ns := w.newNamespace()
		w.namespaceGone(ns, w.exits(3, "install", "x", w.chart(configMap("a", "1"), deployment("d", "other", "  replicas: -1")), "-n", ns, "--create-namespace"))
	})
	// The server is asked about Pods only when the namespace is there.
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: {%s}}\nspec: {restartPolicy: Sometimes, containers: [{name: c, image: \"r/x:1\"}]}\n"
	for name, annotation := range map[string]string{"a late rejection": "", "a late rejection of a hook": "helm.sh/hook: pre-install"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			ns := w.newNamespace()
			r := w.exits(3, "install", "x", w.chart(configMap("a", "1"), fmt.Sprintf(pod, annotation)), "-n", ns, "--create-namespace")
			w.says(r, "stderr", "nothing was changed|Rejected before the first change", "Sometimes")
			w.namespaceGone(ns, r)
		})
	}
}

// A kind whose definition is deleted while the namespace is searched has no objects there.
func TestNamespaceMadeInVainGoesWhenAKindGoesMeanwhile(t *testing.T) {
	w := newWorld(t)
	ns, definition := w.newNamespace(), "widgets."+w.unique()+".deployer.io"
	w.dropCRD(definition)
	w.ok("install", "definition", w.chartOf(map[string]string{"templates/crd.yaml": widgetCRD(w.unique())}))
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {restartPolicy: Sometimes, containers: [{name: c, image: \"r/x:1\"}]}\n"
	lists := func(_ int, c call) bool {
		return c.method == "GET" && strings.Contains(c.path, w.unique()+".deployer.io/v1/namespaces/"+ns+"/widgets")
	}
	run := w.hold(lists, "install", "x", w.chart(pod), "-n", ns, "--create-namespace").must()
	w.remove("customresourcedefinitions", definition, metav1.DeleteOptions{}) // at once: the run, which is held, has ten seconds for its list
	w.eventually("the kind to be gone", func() bool {
		_, err := w.cluster.Dynamic().Resource(schema.GroupVersionResource{Group: w.unique() + ".deployer.io", Version: "v1", Resource: "widgets"}).List(w.Context(), metav1.ListOptions{})
		return apierrors.IsNotFound(err)
	})
	w.namespaceGone(ns, run.rest())
}

// TestNewNamespaceIsCountedAndShown as in the plan.
func TestNewNamespaceIsCountedAndShown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ format, applied, counted string }{
		{"json", `"event":"applied".*"object":"Namespace/NS".*"action":"create"`, `"created":2,`},
		{"table", `created Namespace/NS`, `2/2: 2 created`},
	} {
		t.Run(c.format, func(t *testing.T) {
			w := newWorld(t)
			chart, ns := w.chart(configMap("a", "1")), w.newNamespace()
			w.says(w.ok("plan", "x", chart, "-n", ns, "--create-namespace"), "stdout", "2 to create")
			r := w.ok("install", "x", chart, "-n", ns, "--create-namespace", "-o", c.format)
			stream := map[string]string{"json": "stdout", "table": "stderr"}[c.format]
			w.says(r, stream, strings.ReplaceAll(c.applied, "NS", ns), c.counted)
		})
	}
}

// The new namespace is no reason to ask again about what isn't in it.
func TestNewNamespaceLeavesTheDecisionAsItIs(t *testing.T) {
	w := newWorld(t)
	p, ns := w.proxied(), w.newNamespace()
	w.dropCRD("widgets." + w.unique() + ".deployer.io")
	chart := w.chartOf(map[string]string{"crds/widgets.yaml": widgetCRD(w.unique()), "templates/a.yaml": configMap("a", "1")})
	w.ok("install", "x", chart, "-n", ns, "--create-namespace")
	asked := map[string]int{}
	for _, c := range p.seen() {
		for _, resource := range []string{"customresourcedefinitions", ns + "/configmaps", "default/configmaps"} {
			if strings.Contains(c.path, "/"+resource) && strings.Contains(c.path, "dryRun=All") {
				asked[resource]++
			}
		}
	}
	for resource, n := range map[string]int{"customresourcedefinitions": 1, ns + "/configmaps": 1, "default/configmaps": 1} {
		if asked[resource] != n {
			t.Errorf("%d dry runs of %s, want %d: %v", asked[resource], resource, n, asked)
		}
	}
}

// What others have put into the namespace meanwhile isn't deleted with it.
func TestNamespaceMadeInVainStaysWithWhatOthersPutThere(t *testing.T) {
	w := newWorld(t)
	ns := w.newNamespace()
	first := w.hold(writes("POST", "/leases"), "install", "x", w.chart(configMap("a", "1")), "-n", ns, "--create-namespace").must()
	w.ok("install", "x", w.chart(configMap("a", "2")), "-n", ns)
	r := first.rest()
	if r.code != 1 {
		t.Errorf("want exit code 1:\n%s", r)
	}
	w.says(r, "stderr", "still in use")
	if got := w.get("namespaces", ns); got == nil || got.GetDeletionTimestamp() != nil {
		t.Errorf("the namespace was deleted, with the other's release:\n%s", r)
	}
}

// Pods are admitted once the cluster has made the account they run as.
func TestThirtyFirstInstallsAtOnce(t *testing.T) {
	w := newWorld(t)
	dir := w.chart("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: \"r/x:1\"}]}\n")
	results := make(chan result)
	for i := range 30 {
		other := *w
		ns := w.ns + "-" + strings.Repeat("i", i%3+1) + string(rune('a'+i/3))
		w.Cleanup(func() {
			_ = w.cluster.Client().CoreV1().Namespaces().Delete(context.WithoutCancel(w.Context()), ns, metav1.DeleteOptions{})
		})
		go func() {
			results <- other.try(deployerBinary, "install", "x", dir, "-n", ns, "--create-namespace", "--wait=false")
		}()
	}
	for range 30 {
		w.succeeds(<-results)
	}
}

// Without permission for Leases the record is the only fence: what slips in between
// the last look and its creation is seen too, and nothing is changed.
func TestWithoutLeasesTheRecordIsTheFence(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first []string
		at    func(int, call) bool
	}{
		"an upgrade":    {[]string{"upgrade", "x", "CHART"}, writes("POST", "/secrets")},
		"a rollback":    {[]string{"rollback", "x", "1"}, writes("POST", "/secrets")},
		"an uninstall":  {[]string{"uninstall", "x"}, writes("PUT", "/sh.helm.release.v1.x.v1")},
		"a test of old": {[]string{"test", "x"}, func(_ int, c call) bool { return strings.Contains(c.path, "status+notin") }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.user = w.cluster.User(t, w.ns)
			for _, group := range []string{"", "apps", "batch"} {
				w.user.Allow(t, "", kubetest.Rule(group, "*", "*"))
			}
			w.kubeconfig = w.user.Kubeconfig(t, w.ns)
			test := hookJob("test", "test", "hook-succeeded", false)
			w.ok("install", "x", w.chart(configMap("a", "1"), test))
			first := w.hold(c.at, strings.Fields(strings.ReplaceAll(strings.Join(c.first, " "), "CHART", w.chart(configMap("a", "2"))))...).must()
			w.ok("uninstall", "x")
			w.ok("install", "x", w.chart(configMap("a", "other"), configMap("c", "other"), test))
			r := first.rest()
			if r.code != 5 && !(c.first[0] == "test" && r.code == 0) {
				t.Errorf("want exit code 5:\n%s", r)
			}
			w.value("a", "other")
			w.value("c", "other")
			w.statuses("x", "deployed")
		})
	}
}

// A namespace isn't made without permission for records, and goes when the release is
// refused its first record nevertheless.
func TestNamespaceMadeInVainGoesWhenNothingCanBeRecorded(t *testing.T) {
	t.Parallel()
	t.Run("no permission", func(t *testing.T) {
		w := newWorld(t)
		ns := w.newNamespace()
		w.user = w.cluster.User(t, w.ns)
		w.user.Allow(t, "", kubetest.Rule("*", "get,list,watch", "*"), kubetest.Rule("", "create,delete", "namespaces"),
			kubetest.Rule("", "*", "configmaps"), kubetest.Rule("coordination.k8s.io", "*", "leases"))
		w.kubeconfig = w.user.Kubeconfig(t, w.ns)
		r := w.exits(3, "install", "x", w.chart(configMap("a", "1")), "-n", ns, "--create-namespace")
		w.says(r, "stderr", "no permission to create secrets in namespace "+ns)
		if w.get("namespaces", ns) != nil {
			t.Errorf("Namespace/%s was made:\n%s", ns, r)
		}
	})
	t.Run("an admission policy", func(t *testing.T) {
		w := newWorld(t)
		w.cluster.Since(t, "1.30", "ValidatingAdmissionPolicies")
		ns := w.newNamespace()
		run := w.hold(writes("POST", "/secrets"), "install", "x", w.chart(configMap("a", "1")), "-n", ns, "--create-namespace").must()
		w.forbidSecrets(ns)
		r := run.rest()
		if r.code != 1 {
			t.Errorf("want exit code 1:\n%s", r)
		}
		w.says(r, "stderr", "sh.helm.release.v1.x.v1.*no Secrets here")
		w.namespaceGone(ns, r)
	})
}

// forbidSecrets lets an admission policy forbid all Secrets in a namespace.
func (w *world) forbidSecrets(ns string) {
	w.Helper()
	for kind, manifest := range map[string]string{
		"validatingadmissionpolicies": `kind: ValidatingAdmissionPolicy
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [secrets]}]}
  validations: [{expression: "false", message: no Secrets here}]`,
		"validatingadmissionpolicybindings": `kind: ValidatingAdmissionPolicyBinding
spec:
  policyName: ` + ns + `
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ` + ns + `}}}`,
	} {
		w.create(kind, "kubectl", "apiVersion: admissionregistration.k8s.io/v1\nmetadata: {name: "+ns+"}\n"+manifest)
		w.Cleanup(func() { _ = w.in(kind).Delete(context.WithoutCancel(w.Context()), ns, metav1.DeleteOptions{}) })
	}
	w.eventually("the policy acts", func() bool {
		probe := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"}}
		_, err := w.cluster.Client().CoreV1().Secrets(ns).Create(w.Context(), probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "no Secrets here")
	})
}

// Of two first installs into a new namespace only one makes it, and the one that
// is refused doesn't take it away.
func TestNamespaceOfTwoFirstInstalls(t *testing.T) {
	w := newWorld(t)
	ns := w.newNamespace()
	one := w.chart(configMap("a", "1"))
	// Both find no namespace, and only one of them makes it.
	second := w.hold(writes("POST", "/namespaces"), "install", "x", one, "-n", ns, "--create-namespace").must()
	first := w.hold(writes("POST", "/secrets"), "install", "x", one, "-n", ns, "--create-namespace").must()
	if r := second.rest(); r.code != 5 {
		t.Errorf("want exit code 5:\n%s", r)
	}
	if got := w.must("namespaces", ns); got.GetDeletionTimestamp() != nil {
		t.Error("the namespace of the other was deleted")
	}
	w.succeeds(first.rest())
}
