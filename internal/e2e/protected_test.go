package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"deployer/internal/kubetest"
)

// TestKeptInsideWhatGoes: an object that a release never deletes keeps its namespace and its kind.
func TestKeptInsideWhatGoes(t *testing.T) {
	w := newWorld(t)
	name := w.unique()
	const keep = "\n  annotations: {helm.sh/resource-policy: keep}"
	ns := "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + w.ns + "-%s}\n"
	claim := "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: data\n  namespace: " + w.ns + "-held" + keep + "\nspec: {storageClassName: none, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
	chart := w.chart(widgetCRD(name), fmt.Sprintf(ns, "held"), fmt.Sprintf(ns, "free"), claim, replaceOnce(widget(name), "{name: w}", "{name: w, annotations: {helm.sh/resource-policy: keep}}"))
	t.Cleanup(func() {
		for _, suffix := range []string{"-held", "-free"} {
			_ = w.in("namespaces").Delete(w.bound(), w.ns+suffix, metav1.DeleteOptions{})
		}
		_ = w.in("customresourcedefinitions").Delete(w.bound(), "widgets."+name+".deployer.io", metav1.DeleteOptions{})
	})
	w.ok("install", "x", "--wait=false", chart)
	w.says(w.ok("plan", "--uninstall", "x"), "stdout", `Namespace/`+w.ns+`-held\s+keep: PersistentVolumeClaim/\S+/data stays`, `CustomResourceDefinition/\S+\s+keep: Widget/\S+ stays`, `Namespace/`+w.ns+`-free\s+delete`)
	w.ok("uninstall", "x")
	if held := w.must("namespaces", w.ns+"-held"); held.GetDeletionTimestamp() != nil {
		t.Error("the namespace of what is kept is being deleted")
	}
	if w.get("namespaces", w.ns+"-free") != nil {
		t.Error("the other namespace is left")
	}
}

// TestUninstallWaitsForFinalizers: who removes the finalizer of a custom resource goes when that is gone, and a second
// uninstall ends what the first one could not.
func TestUninstallWaitsForFinalizers(t *testing.T) {
	w := newWorld(t)
	name := w.unique()
	w.create("customresourcedefinitions", "test", widgetCRD(name))
	t.Cleanup(func() {
		_ = w.in("customresourcedefinitions").Delete(w.bound(), "widgets."+name+".deployer.io", metav1.DeleteOptions{})
	})
	finalized := replaceOnce(widget(name), "{name: w}", "{name: w, finalizers: [example.com/x]}")
	w.cluster.Eventually(t, time.Minute, "the kind to be served", func(context.Context) error {
		if r := w.try(deployerBinary, "install", "x", w.chart(finalized, deployment("operator", "operator", ""))); r.code != 0 {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
	w.says(w.ok("plan", "--uninstall", "x"), "stdout", `after Widget/\S+ is deleted`)
	w.says(w.exits(1, "uninstall", "x", "--timeout", "5s"), "stderr", `must be deleted first`, `example.com/x`)
	w.there("deployments", map[string]bool{"operator": true})
	go func() { // the operator
		widgets := w.cluster.Dynamic().Resource(widgetsOf(name)).Namespace(w.ns)
		list, err := widgets.List(w.bound(), metav1.ListOptions{})
		if err == nil {
			for _, item := range list.Items {
				_, _ = widgets.Patch(w.bound(), item.GetName(), "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			}
		}
	}()
	w.ok("uninstall", "x", "--timeout", "30s")
	w.nothingLeft()
}

// TestObjectsOfCRDsDirectoryStay: what is in crds/, defines no kind and belongs to nobody is only created, as by Helm.
func TestObjectsOfCRDsDirectoryStay(t *testing.T) {
	w := newWorld(t)
	w.create("configmaps", "somebody", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {key: tuned}\n")
	chart := func(n string) string {
		return w.chartOf(map[string]string{"crds/x.yaml": configMap("settings", n) + "---\n" + configMap("made", n), "templates/a.yaml": configMap("a", n)})
	}
	w.ok("install", "x", chart("1"))
	w.patch("configmaps", "made", "application", `{"data":{"key":"state"}}`)
	w.ok("upgrade", "x", chart("2"))
	for name, want := range map[string]string{"settings": "tuned", "made": "state", "a": "2"} {
		if got := field(w.must("configmaps", name), "data.key"); got != want {
			t.Errorf("ConfigMap/%s has %v, want %s", name, got, want)
		}
	}
}

// TestUninstallOutlastsThePolicyItDeletes fails if an uninstall fails because the API server goes for a moment by a policy that is
// deleted, and denies the record for the lack of the policy's parameter, which is deleted too.
func TestUninstallOutlastsThePolicyItDeletes(t *testing.T) {
	w := newWorld(t)
	w.keepParametersWatched("ConfigMap")
	policy := strings.NewReplacer("resources: [configmaps]", "resources: [secrets]", "    objectSelector: {matchLabels: {checked: \"true\"}}\n", "",
		"parameterNotFoundAction: Allow", "parameterNotFoundAction: Deny", "NS", w.ns, "UNIQUE", w.unique()).Replace(policyBy("ConfigMap", "object.metadata.name != 'tried'"))
	w.ok("install", "x", w.chart(policy, configMap("param", "1")))
	w.eventually("the policy is heeded", func() bool {
		_, err := w.in("secrets").Create(w.bound(), kubetest.Object(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: tried}\n"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil
	})
	w.ok("uninstall", "x")
}

// TestUninstallEndsWhatRefusesItsRecords fails if a release can't be uninstalled because its own webhook, which doesn't answer,
// refuses its lock or record, also one that a dead run left; or if one that stays refuses them and anything is deleted.
func TestUninstallEndsWhatRefusesItsRecords(t *testing.T) {
	t.Parallel()
	const both, secrets = `apiGroups: ["", coordination.k8s.io], apiVersions: [v1], resources: [secrets, leases]`, `apiGroups: [""], apiVersions: [v1], resources: [secrets]`
	for name, c := range map[string]struct {
		rule, hook, says string
		signal           os.Signal // that ends the install
		foreign          bool
	}{
		"the lock":                           {rule: both, says: "can't be locked.*the uninstall deletes what refuses it"},
		"the record":                         {rule: secrets, says: "doesn't say yet that the release is being uninstalled", hook: hookJob("before", "pre-delete", "hook-succeeded", false)},
		"the journal":                        {rule: secrets + `, operations: [CREATE]}, {apiGroups: [none.example.com], apiVersions: [v1], resources: [nones]`, hook: hookJob("before", "pre-delete", "hook-succeeded", false)},
		"the record of a dead run":           {rule: secrets, says: "doesn't say that the run before has failed.*the uninstall deletes what refuses that", hook: endlessHook("endless", "post-install") + "---\n" + hookJob("before", "pre-delete", "hook-succeeded", false), signal: os.Kill},
		"the record of a run that is undone": {rule: secrets, says: "has been uninstalled due to atomic", hook: endlessHook("endless", "post-install"), signal: os.Interrupt},
		"somebody else's webhook":            {rule: secrets, says: "failed calling webhook", foreign: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			name := w.unique()
			webhook := func(name, rule string) string {
				return strings.NewReplacer("NS", w.ns, "UNIQUE", name).Replace(replaceOnce(webhookOf("Ignore"), `apiGroups: [""], apiVersions: [v1], resources: [configmaps]`, rule))
			}
			parts := []string{configMap("a", "1"), webhook(name, c.rule)}
			refusing := name
			if c.foreign {
				refusing += "-foreign"
				parts[1] = webhook(name, `apiGroups: ["none.example.com"], apiVersions: [v1], resources: ["*"]`)
				w.create("validatingwebhookconfigurations", "somebody", webhook(refusing, c.rule))
				w.Cleanup(func() { w.remove("validatingwebhookconfigurations", refusing, metav1.DeleteOptions{}) })
			}
			if c.hook != "" {
				parts = append(parts, c.hook)
			}
			run := func() result { return w.ok("install", name, w.chart(parts...)) }
			if c.signal != nil {
				cmd, done := w.start("install", name, w.chart(parts...), "--atomic")
				w.waiting()
				run = func() result {
					if err := cmd.Process.Signal(c.signal); err != nil {
						t.Fatal(err)
					}
					return done(cmd.Wait())
				}
			}
			refuse := func() {
				if _, err := w.in("validatingwebhookconfigurations").Patch(w.bound(), refusing, types.JSONPatchType, []byte(`[{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Fail"}]`), metav1.PatchOptions{}); err != nil {
					t.Fatal(err)
				}
				w.eventually("the webhook refuses", func() bool {
					secret := kubetest.Object(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: tried}\n")
					_, err := w.in("secrets").Create(w.bound(), secret, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
					return err != nil
				})
			}
			if c.signal == os.Interrupt { // its undo meets the webhook
				refuse()
				r := run()
				w.says(r, "stderr", c.says)
				w.nothingLeft()
				return
			}
			run()
			refuse()
			if c.foreign {
				w.says(w.exits(1, "uninstall", name), "stderr", c.says)
				w.there("configmaps", map[string]bool{"a": true})
				w.statuses(name, "deployed")
				return
			}
			r := w.ok("uninstall", name)
			w.says(r, "stderr", c.says)
			if strings.Contains(r.err, "--takeover-pending") {
				t.Errorf("it says that nothing is changed:\n%s", r)
			}
			w.nothingLeft()
		})
	}
}
