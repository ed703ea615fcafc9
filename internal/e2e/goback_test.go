package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/internal/kubetest"
)

// unplaced is a Deployment that never becomes ready.
func unplaced(name, image string) string {
	return replaceOnce(deployment(name, name, ""), "image: r/x:1", "image: "+image+"\n      nodeSelector: {no: where}")
}

// image is that of a Deployment's first container.
func (w *world) image(deployment string) any {
	w.Helper()
	containers, _ := field(w.must("deployments", deployment), "spec.template.spec").(map[string]any)["containers"].([]any)
	return containers[0].(map[string]any)["image"]
}

// TestGoingBackLeavesWhatCannot: what can't go back to an earlier revision stays, and holds up none of the others.
func TestGoingBackLeavesWhatCannot(t *testing.T) {
	t.Parallel()
	immutable := func(value string) string { return configMap("fixed", value) + "immutable: true\n" }
	statefulSet := func(service string) string {
		return replaceOnce(deployment("db", "db", "  replicas: 0\n  serviceName: "+service), "kind: Deployment", "kind: StatefulSet")
	}
	for name, c := range map[string]struct {
		before, after string
		allow         []string // flags that let the upgrade do it
		recreatable   bool
		kind          string
	}{
		"immutable ConfigMap": {before: configMap("fixed", "1"), after: immutable("2"), recreatable: true, kind: "ConfigMap"},
		"StatefulSet":         {before: statefulSet("a"), after: statefulSet("b"), allow: []string{"--allow-recreate"}, recreatable: true, kind: "StatefulSet"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			old, next := w.chart(c.before, deployment("web", "web", "")), w.chart(c.after, replaceOnce(deployment("web", "web", ""), "r/x:1", "r/x:2"))
			w.ok("install", "x", old)
			w.ok(append([]string{"upgrade", "x", next}, c.allow...)...)
			w.says(w.ok("plan", "--rollback", "x", "1"), "stdout", c.kind+`/\S+\s+keep: can't go back`, `roll back to revision 1 with --allow-recreate`)
			r := w.exits(1, "rollback", "x", "1")
			w.says(r, "stderr", `Can't go back: `+c.kind, `roll back to revision 1 with --allow-recreate`, `revision 1`)
			if got := w.image("web"); got != "r/x:1" {
				t.Errorf("the Deployment has image %v after the rollback\n%s", got, r)
			}
			w.statuses("x", "superseded", "deployed", "failed")
			w.ok("rollback", "x", "1", "--allow-recreate")
			w.statuses("x", "superseded", "superseded", "failed", "deployed")
		})
	}
}

// TestUndoLeavesWhatCannotGoBack is the same for what --atomic undoes.
func TestUndoLeavesWhatCannotGoBack(t *testing.T) {
	t.Parallel()
	old := []string{configMap("fixed", "1"), deployment("web", "web", "")}
	bad := []string{configMap("fixed", "2") + "immutable: true\n", unplaced("web", "r/x:2")}
	for _, c := range []struct {
		code  int
		flags []string
	}{{7, nil}, {6, []string{"--allow-recreate"}}} {
		t.Run(fmt.Sprint(c.code), func(t *testing.T) {
			w := newWorld(t)
			w.ok("install", "x", w.chart(old...))
			r := w.exits(c.code, append([]string{"upgrade", "x", w.chart(bad...), "--atomic", "--timeout", "8s"}, c.flags...)...)
			if got := w.image("web"); got != "r/x:1" {
				t.Errorf("the Deployment has image %v\n%s", got, r)
			}
			if c.code == 7 {
				w.says(r, "stderr", `Can't go back: ConfigMap/`, `rolled back, but not completely`)
			}
		})
	}
}

// TestRefusedByNewPolicy: a policy that came since holds up only what it refuses.
func TestRefusedByNewPolicy(t *testing.T) {
	w := newWorld(t)
	w.cluster.Since(t, "1.30", "ValidatingAdmissionPolicies")
	w.ok("install", "x", w.chart(configMap("judged", "1"), configMap("free", "1")))
	w.ok("upgrade", "x", w.chart(configMap("judged", "2"), configMap("free", "2")))
	w.denies("judged", "1")
	w.says(w.exits(1, "rollback", "x", "1"), "stderr", "not allowed", "judged")
	for name, want := range map[string]string{"judged": "2", "free": "1"} {
		if got := field(w.must("configmaps", name), "data.key"); got != want {
			t.Errorf("ConfigMap/%s has %v, want %s", name, got, want)
		}
	}
}

// denies makes a policy that denies a value of a ConfigMap. It returns what takes the policy away. Both wait until the API server goes by it.
func (w *world) denies(name, value string) (end func()) {
	w.cluster.Since(w.T, "1.30", "ValidatingAdmissionPolicies")
	policy := "denies-" + w.ns
	w.create("validatingadmissionpolicies", "test", `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: `+policy+`},
spec: {matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: ["*"], operations: ["*"], resources: [configmaps], resourceNames: [`+name+`]}], namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: `+w.ns+`}}},
  validations: [{expression: "object.data.key != '`+value+`'", message: "not allowed"}]}}`)
	w.create("validatingadmissionpolicybindings", "test", `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: `+policy+`}, spec: {policyName: `+policy+`, validationActions: [Deny]}}`)
	isDenied := func() bool {
		_, err := w.in("configmaps").Create(w.bound(), kubetest.Object(w.T, configMap(name, value)), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "not allowed")
	}
	remove := func() {
		_ = w.in("validatingadmissionpolicybindings").Delete(context.Background(), policy, metav1.DeleteOptions{})
		_ = w.in("validatingadmissionpolicies").Delete(context.Background(), policy, metav1.DeleteOptions{})
	}
	w.Cleanup(remove)
	w.eventually("the policy is in force", isDenied)
	return func() {
		remove()
		w.eventually("the policy is in force no more", func() bool { return !isDenied() })
	}
}

// TestGoingBackWithoutAKind fails if a kind that somebody has removed from the cluster holds up all that can go back.
func TestGoingBackWithoutAKind(t *testing.T) {
	w := newWorld(t)
	group, put := w.definesProm()
	put("")()
	w.eventually("the kind is served", func() bool {
		_, err := w.proms(group).List(w.bound(), metav1.ListOptions{})
		return err == nil
	})
	prom := "apiVersion: " + group + "/v1\nkind: Prom\nmetadata: {name: main}\nspec: {version: '1'}\n"
	w.ok("install", "x", w.chart(configMap("a", "1"), prom))
	w.ok("upgrade", "x", w.chart(configMap("a", "2")))
	w.remove("customresourcedefinitions", "proms."+group, metav1.DeleteOptions{})
	w.eventually("the kind is gone", func() bool {
		_, err := w.proms(group).List(w.bound(), metav1.ListOptions{})
		return apierrors.IsNotFound(err)
	})
	r := w.exits(1, "rollback", "x", "1")
	w.says(r, "stderr", `Prom/`+w.ns+`/main`, "the cluster has no kind Prom", "when the cluster has the kind again")
	if got := field(w.must("configmaps", "a"), "data.key"); got != "1" {
		t.Errorf("ConfigMap/a has %v\n%s", got, r)
	}
}

// TestStayingAheadIsDone: a claim that has grown and a definition that has more do no harm.
func TestStayingAheadIsDone(t *testing.T) {
	w := newWorld(t)
	group := w.unique() + ".example.com"
	crd := func(versions string) string {
		return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things." + group + "}\nspec: {group: " + group + ", scope: Namespaced, names: {kind: Thing, plural: things}, versions: [" + versions + "]}\n"
	}
	version := func(name string, storage bool) string {
		return fmt.Sprintf("{name: %s, served: true, storage: %v, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}", name, storage)
	}
	w.create("storageclasses", "test", `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: `+w.ns+`}, provisioner: test/none, allowVolumeExpansion: true}`)
	w.create("persistentvolumes", "test", `{apiVersion: v1, kind: PersistentVolume, metadata: {name: `+w.ns+`}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], storageClassName: `+w.ns+`, claimRef: {namespace: `+w.ns+`, name: data}, hostPath: {path: /x}}}`)
	t.Cleanup(func() {
		_ = w.in("persistentvolumes").Delete(context.Background(), w.ns, metav1.DeleteOptions{})
		_ = w.in("storageclasses").Delete(context.Background(), w.ns, metav1.DeleteOptions{})
		_ = w.in("customresourcedefinitions").Delete(context.Background(), "things."+group, metav1.DeleteOptions{})
	})
	claim := func(size string) string {
		return "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, labels: {size: " + size + "}}\nspec: {storageClassName: " + w.ns + ", accessModes: [ReadWriteOnce], resources: {requests: {storage: " + size + "}}}\n"
	}
	w.ok("install", "x", w.chart(claim("1Gi"), crd(version("v1", true)), deployment("web", "web", "")))
	w.cluster.Eventually(t, time.Minute, "the claim to be bound", func(context.Context) error {
		if phase := field(w.must("persistentvolumeclaims", "data"), "status.phase"); phase != "Bound" {
			return fmt.Errorf("it is %v", phase)
		}
		return nil
	})
	more := []string{claim("2Gi"), crd(version("v1", false) + ", " + version("v2", true))}
	r := w.exits(6, append([]string{"upgrade", "x", "--atomic", "--timeout", "8s"}, w.chart(append(more, unplaced("web", "r/x:2"))...))...)
	w.says(r, "stderr", `a claim can't shrink`)
	if got := w.image("web"); got != "r/x:1" {
		t.Errorf("the Deployment has image %v\n%s", got, r)
	}
	data := w.must("persistentvolumeclaims", "data")
	if size, label := field(data, "spec.resources.requests.storage"), data.GetLabels()["size"]; size != "2Gi" || label != "1Gi" {
		t.Errorf("the claim has size %v and the label of %s: the label has to go back, and the size can't", size, label)
	}
	w.ok("upgrade", "x", w.chart(append(more, deployment("web", "web", ""))...))
	w.ok("rollback", "x", "1")
}
