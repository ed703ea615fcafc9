package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"deployer/internal/kubetest"
)

// whenHookRuns does what the program of a hook's Job would do, once the Job was created.
func (w *world) whenHookRuns(do func()) {
	w.whenMade("the Job of a hook", func(method, path string) bool { return method == http.MethodPost && strings.HasSuffix(path, "/jobs") }, do)
}

// whenJobRuns does what the program of a Job of the chart would do, once the Job was applied.
func (w *world) whenJobRuns(name string, do func()) {
	w.whenMade("Job "+name, func(method, path string) bool {
		return method == http.MethodPatch && strings.HasSuffix(path, "/jobs/"+name)
	}, do)
}

// whenMade does something after the first request to make an object, which must come.
func (w *world) whenMade(what string, isIt func(method, path string) bool, do func()) {
	came := false
	w.Cleanup(func() {
		if !came {
			w.Errorf("%s was never made", what)
		}
	})
	w.proxied().arm(&fate{
		at: func(_ int, c call) bool {
			path, _, _ := strings.Cut(c.path, "?")
			return c.write() && isIt(c.method, path)
		},
		when: after,
		do: func() {
			came = true
			do()
		},
	})
}

// scale sets the replicas of a Deployment as kubectl scale does.
func (w *world) scale(name string, n string) {
	w.patch("deployments", name, "kubectl", `{"spec":{"replicas":`+n+`}}`, "scale")
}

func (w *world) remove(kind, name string, opts metav1.DeleteOptions) {
	w.Helper()
	if err := w.in(kind).Delete(w.bound(), name, opts); err != nil {
		w.Fatal(err)
	}
}

// TestLooksAgainAfterHooks fails if what a hook has deleted or changed stays so because the plan, from before
// the hook, has it as unchanged.
func TestLooksAgainAfterHooks(t *testing.T) {
	t.Parallel()
	for event, run := range map[string]func(w *world, first, second string){
		"pre-upgrade": func(w *world, _, second string) { w.ok("upgrade", "x", second) },
		"pre-rollback": func(w *world, first, second string) {
			w.ok("upgrade", "x", second, "--no-hooks")
			w.ok("rollback", "x", "1")
		},
	} {
		t.Run(event, func(t *testing.T) {
			w := newWorld(t)
			hook := hookJob("stop", event, "before-hook-creation", false)
			rest := []string{configMap("cache", "1"), configMap("tls", "1"), deployment("web", "web", "  replicas: 1\n"), hook}
			first, second := w.chart(append(rest, configMap("other", "1"))...), w.chart(append(rest, configMap("other", "2"))...)
			w.ok("install", "x", first)
			w.whenHookRuns(func() {
				w.remove("configmaps", "cache", metav1.DeleteOptions{})
				w.patch("configmaps", "tls", "kubectl-patch", `{"data":{"key":"hook"}}`)
				w.scale("web", "0")
			})
			run(w, first, second)
			w.there("configmaps", map[string]bool{"cache": true, "tls": true})
			if got := field(w.must("configmaps", "tls"), "data.key"); got != "1" {
				t.Errorf("ConfigMap/tls has key = %v, want the chart's", got)
			}
			if got := field(w.must("deployments", "web"), "spec.replicas"); got != int64(1) {
				t.Errorf("Deployment/web has %v replicas, want the chart's", got)
			}
		})
	}
}

// TestHookMakesAnObjectAnew fails if an upgrade is refused because its hook has made an object of the release again, or
// replaced it, as kubectl does: without ownership, or has made one that the upgrade was to create. What is another release's isn't
// taken for that.
func TestHookMakesAnObjectAnew(t *testing.T) {
	w := newWorld(t)
	hook := hookJob("renew", "pre-upgrade", "before-hook-creation", false)
	chart := func(more ...string) string { return w.chart(append(more, hook, configMap("same", "1"))...) }
	w.ok("install", "x", chart(configMap("changes", "1")))
	anew := func(names ...string) func() {
		return func() {
			for _, name := range names {
				_ = w.in("configmaps").Delete(w.bound(), name, metav1.DeleteOptions{})
				w.create("configmaps", "kubectl-create", configMap(name, "anew"))
			}
		}
	}
	w.whenHookRuns(anew("same", "changes"))
	w.ok("upgrade", "x", chart(configMap("changes", "2")))
	for name, want := range map[string]string{"same": "1", "changes": "2"} {
		obj := w.must("configmaps", name)
		if key, owner := field(obj, "data.key"), obj.GetAnnotations()["meta.helm.sh/release-name"]; key != want || owner != "x" {
			t.Errorf("ConfigMap/%s has key = %v and belongs to %q, want %s and x", name, key, owner, want)
		}
	}
	w.whenHookRuns(anew("new"))
	w.says(w.ok("upgrade", "x", chart(configMap("changes", "3"), configMap("new", "1"))), "stderr", `updated ConfigMap/`+w.ns+`/new`)
	if key := field(w.must("configmaps", "new"), "data.key"); key != "1" {
		t.Errorf("ConfigMap/new has key = %v, want the chart's", key)
	}
	w.whenHookRuns(func() {
		w.create("configmaps", "kubectl-create", replaceOnce(configMap("theirs", "1"), "metadata:\n", "metadata:\n  annotations: {meta.helm.sh/release-name: other, meta.helm.sh/release-namespace: "+w.ns+"}\n"))
	})
	w.says(w.exits(1, "upgrade", "x", chart(configMap("changes", "4"), configMap("theirs", "1"))), "stderr", `only hooks ran`, `ConfigMap/`+w.ns+`/theirs.*cannot be imported`)
}

// TestAutoscalerThatComesFindsPods fails if a workload stays at zero, where no autoscaler acts, because the chart leaves its
// number to one from now on and the upgrade's hook has stopped it.
func TestAutoscalerThatComesFindsPods(t *testing.T) {
	w := newWorld(t)
	autoscaler := "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\n" +
		"spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 2, maxReplicas: 5}\n"
	w.ok("install", "x", w.chart(deployment("web", "web", "  replicas: 3\n")), "--wait=false")
	next := w.chart(deployment("web", "web", ""), autoscaler, hookJob("stop", "pre-upgrade", "before-hook-creation", false))
	w.whenHookRuns(func() { w.scale("web", "0") })
	w.ok("upgrade", "x", next, "--wait=false")
	if got := field(w.must("deployments", "web"), "spec.replicas"); got == int64(0) {
		t.Errorf("Deployment/web has %v replicas", got)
	}
	// The autoscaler is there when the plan of the rest is made again.
	w.ok("upgrade", "x", w.chart(deployment("web", "web", "  replicas: 3\n")), "--wait=false")
	w.scale("web", "0")
	work := job("work", "example.com/a: b", `[{"phase":"Succeeded","state":{"terminated":{"exitCode":0,"reason":"Completed"}}}]`, "r/x:1")
	later := replaceOnce(deployment("web", "web", ""), "metadata:\n", "metadata:\n  annotations: {deployer.io/weight: \"5\"}\n")
	w.ok("upgrade", "x", w.chart(later, autoscaler, work), "--wait=false")
	if got := field(w.must("deployments", "web"), "spec.replicas"); got == int64(0) {
		t.Errorf("Deployment/web of a later wave has %v replicas", got)
	}
}

// disowned are ways in which a hook may write an object of a release that stays the release's, as merge patches.
var disowned = map[string]string{
	"no name":        `{"metadata":{"annotations":{"meta.helm.sh/release-name":null}}}`,
	"no namespace":   `{"metadata":{"annotations":{"meta.helm.sh/release-namespace":null}}}`,
	"other label":    `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"kubectl"}}}`,
	"half and label": `{"metadata":{"labels":{"app.kubernetes.io/managed-by":null},"annotations":{"meta.helm.sh/release-name":null}}}`,
	"nothing":        `{"metadata":{"labels":{"app.kubernetes.io/managed-by":null},"annotations":{"meta.helm.sh/release-name":null,"meta.helm.sh/release-namespace":null}}}`,
}

// TestHookDisowns fails if what a hook writes about the ownership of the release's objects keeps them from being changed, or from
// being deleted when the chart drops them or the release is uninstalled.
func TestHookDisowns(t *testing.T) {
	t.Parallel()
	for name, patch := range disowned {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			hook := hookJob("disown", "pre-upgrade,pre-delete", "before-hook-creation", false)
			w.ok("install", "x", w.chart(configMap("same", "1"), configMap("changes", "1"), configMap("dropped", "1"), hook))
			disown := func(names ...string) {
				w.whenHookRuns(func() {
					for _, name := range names {
						w.patch("configmaps", name, "kubectl-patch", patch)
					}
				})
			}
			disown("same", "changes", "dropped")
			w.ok("upgrade", "x", w.chart(configMap("same", "1"), configMap("changes", "2"), hook))
			w.there("configmaps", map[string]bool{"dropped": false})
			for name, want := range map[string]string{"same": "1", "changes": "2"} {
				obj := w.must("configmaps", name)
				of := obj.GetAnnotations()
				if got := []any{field(obj, "data.key"), of["meta.helm.sh/release-name"], of["meta.helm.sh/release-namespace"], obj.GetLabels()["app.kubernetes.io/managed-by"]}; !slices.Equal(got, []any{want, "x", w.ns, "Helm"}) {
					t.Errorf("ConfigMap/%s has %v", name, got)
				}
			}
			disown("same", "changes")
			w.ok("uninstall", "x")
			w.there("configmaps", map[string]bool{"same": false, "changes": false})
		})
	}
}

// TestLooksAgainAfterPreDelete fails if an uninstall leaves what its hook has made anew, or deletes what it has given to others.
func TestLooksAgainAfterPreDelete(t *testing.T) {
	w := newWorld(t)
	w.ok("install", "x", w.chart(configMap("a", "1"), configMap("b", "1"), configMap("c", "1"), configMap("d", "1"), configMap("e", "1"), hookJob("away", "pre-delete", "before-hook-creation", false)))
	again := w.must("configmaps", "a")
	w.remove("configmaps", "a", metav1.DeleteOptions{})
	w.whenHookRuns(func() {
		again.SetResourceVersion("")
		again.SetUID("")
		if _, err := w.in("configmaps").Create(w.bound(), again, metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
		w.remove("configmaps", "b", metav1.DeleteOptions{})
		w.create("configmaps", "kubectl-create", configMap("b", "anew"))
		w.patch("configmaps", "d", "kubectl-patch", `{"metadata":{"annotations":{"meta.helm.sh/release-name":"other"}}}`)
		w.remove("configmaps", "e", metav1.DeleteOptions{})
		w.create("configmaps", "other", replaceOnce(configMap("e", "anew"), "metadata:\n", "metadata:\n  labels: {app.kubernetes.io/managed-by: other}\n"))
	})
	w.ok("uninstall", "x")
	w.there("configmaps", map[string]bool{"a": false, "b": false, "c": false, "d": true, "e": true})
}

// TestAdoptedAfterAHook fails if an object that a failed run has adopted after its hooks is deleted with what the run has made, and not
// given back.
func TestAdoptedAfterAHook(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(w *world, chart string){
		"install": func(w *world, chart string) { w.exits(6, "install", "x", chart, "--take-ownership", "--atomic") },
		"upgrade": func(w *world, chart string) {
			w.ok("install", "x", w.chart(configMap("b", "1")))
			w.exits(6, "upgrade", "x", chart, "--take-ownership", "--atomic")
		},
		"rolled back later": func(w *world, chart string) {
			w.ok("install", "x", w.chart(configMap("b", "1")))
			w.exits(1, "upgrade", "x", chart, "--take-ownership")
			w.ok("rollback", "x", "1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create("configmaps", "kubectl-create", configMap("a", "theirs"))
			run(w, w.chart(configMap("a", "1"), configMap("new", "1"), hookJob("before", "pre-install,pre-upgrade", "before-hook-creation", false),
				hookJob("after", "post-install,post-upgrade", "hook-failed", true)))
			w.there("configmaps", map[string]bool{"a": true, "new": false})
			if a := w.must("configmaps", "a"); field(a, "data.key") != "theirs" || len(a.GetAnnotations()) > 0 {
				t.Errorf("ConfigMap/a has %v, %v", field(a, "data.key"), a.GetAnnotations())
			}
		})
	}
}

// TestConflictAfterHooks: what a hook has changed is a conflict under --conflicts fail, and nothing but hooks has changed.
func TestConflictAfterHooks(t *testing.T) {
	w := newWorld(t)
	hook := hookJob("stop", "pre-upgrade", "before-hook-creation", false)
	w.ok("install", "x", w.chart(configMap("a", "1"), configMap("b", "1"), hook))
	w.whenHookRuns(func() { w.patch("configmaps", "a", "kubectl-patch", `{"data":{"key":"hook"}}`) })
	r := w.exits(1, "upgrade", "x", w.chart(configMap("a", "1"), configMap("b", "2"), hook), "--conflicts", "fail")
	w.says(r, "stderr", `only hooks ran`, `ConfigMap/`+w.ns+`/a`)
	if got := field(w.must("configmaps", "b"), "data.key"); got != "1" {
		t.Errorf("ConfigMap/b has key = %v though the gate was closed", got)
	}
}

func statefulSet(name, size string) string {
	return `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: ` + name + `}
spec:
  serviceName: ` + name + `
  replicas: 0
  selector: {matchLabels: {app: ` + name + `}}
  template:
    metadata: {labels: {app: ` + name + `}}
    spec: {containers: [{name: c, image: r/x:1}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: ` + size + `}}}
`
}

// TestImmutableUntilHooksRan fails if a chart is refused whose hook deletes the object that can't be changed. If the
// hook doesn't, that is told before the first object changes.
func TestImmutableUntilHooksRan(t *testing.T) {
	w := newWorld(t)
	hook := hookJob("recreate", "pre-upgrade", "before-hook-creation", false)
	w.ok("install", "x", w.chart(statefulSet("db", "1Gi"), configMap("a", "1"), hook))
	second := w.chart(statefulSet("db", "2Gi"), configMap("a", "2"), hook)
	w.says(w.ok("plan", "x", second), "stdout", `not verified: hooks run first`)

	r := w.exits(1, "upgrade", "x", second)
	w.says(r, "stderr", `only hooks ran`, `StatefulSet/`+w.ns+`/db`, `--allow-recreate`)
	if got := field(w.must("configmaps", "a"), "data.key"); got != "1" {
		t.Errorf("ConfigMap/a has key = %v though the gate was closed", got)
	}

	w.whenHookRuns(func() {
		orphan := metav1.DeletePropagationOrphan
		w.remove("statefulsets", "db", metav1.DeleteOptions{PropagationPolicy: &orphan})
		w.eventually("the StatefulSet is gone", func() bool { return w.get("statefulsets", "db") == nil })
	})
	w.ok("upgrade", "x", second)
	w.says(w.exits(3, "upgrade", "x", w.chart(statefulSet("db", "3Gi"), configMap("a", "2"))), "stderr", `nothing was changed`)
}

// TestGateThatAHookOpens: what a policy outside of the release refuses is refused before the hooks that may end it, and the message
// says how to let them run first.
func TestGateThatAHookOpens(t *testing.T) {
	w := newWorld(t)
	hook := hookJob("open", "pre-upgrade", "before-hook-creation", false)
	end := w.denies("denied", "1")
	w.ok("install", "x", w.chart(configMap("a", "1")))
	if r := w.exits(3, "upgrade", "x", w.chart(configMap("a", "1"), configMap("denied", "1"))); strings.Contains(r.err, "--gate") {
		t.Errorf("no hook can end it:\n%s", r)
	}
	second := w.chart(configMap("a", "1"), configMap("denied", "1"), hook)
	w.says(w.exits(3, "upgrade", "x", second), "stderr", `if a hook that runs first ends that: --gate best-effort`)
	w.whenHookRuns(end)
	w.ok("upgrade", "x", second, "--gate", "best-effort")
	w.there("configmaps", map[string]bool{"denied": true})
}

// TestHookMakesRoom fails if a release is refused for a quota, a port, a limit or the pod security level of its namespace before its hook
// has run, which makes room.
func TestHookMakesRoom(t *testing.T) {
	w := newWorld(t)
	held := "apiVersion: v1\nkind: Service\nmetadata: {name: held}\nspec: {type: NodePort, ports: [{port: 80, nodePort: 30099}]}\n"
	w.create("services", "somebody", held)
	w.create("resourcequotas", "somebody", "{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {count/configmaps: '1'}}}")
	w.eventually("the quota counts", func() bool {
		return fmt.Sprint(field(w.must("resourcequotas", "q"), "status.used")) == "map[count/configmaps:1]"
	})
	w.create("limitranges", "somebody", "{apiVersion: v1, kind: LimitRange, metadata: {name: small}, spec: {limits: [{type: PersistentVolumeClaim, max: {storage: 1Gi}}]}}")
	level := func(name string) {
		w.patch("namespaces", w.ns, "somebody", `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"`+name+`"}}}`)
	}
	level("baseline")
	claim := "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}}\n"
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: host}\nspec: {hostNetwork: true, containers: [{name: c, image: r/x:1}]}\n"
	asks := func(resource, manifest string) error {
		_, err := w.in(resource).Create(w.bound(), kubetest.Object(t, manifest), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	w.eventually("limit and level are in force", func() bool { return asks("persistentvolumeclaims", claim) != nil && asks("pods", pod) != nil })
	w.whenHookRuns(func() {
		w.remove("services", "held", metav1.DeleteOptions{})
		w.remove("limitranges", "small", metav1.DeleteOptions{})
		w.patch("resourcequotas", "q", "somebody", `{"spec":{"hard":{"count/configmaps":"9"}}}`)
		level("privileged")
		w.eventually("limit and level are in force no more", func() bool { return asks("persistentvolumeclaims", claim) == nil && asks("pods", pod) == nil })
	})
	w.ok("install", "x", "--wait=false", w.chart(replaceOnce(held, "name: held", "name: new"), configMap("a", "1"), configMap("b", "1"), configMap("c", "1"), claim, pod, hookJob("room", "pre-install", "before-hook-creation", false)))
	w.there("configmaps", map[string]bool{"a": true, "b": true, "c": true})
	w.there("services", map[string]bool{"held": false, "new": true})
	w.there("persistentvolumeclaims", map[string]bool{"data": true})
	w.there("pods", map[string]bool{"host": true})
	w.ok("uninstall", "x")
}

// TestHookIsWhatAdmissionReads fails if objects and later hooks are refused before a hook has run that is itself what their refusal
// comes from.
func TestHookIsWhatAdmissionReads(t *testing.T) {
	w := newWorld(t)
	quota := func(n int) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, annotations: {helm.sh/hook: 'pre-install,pre-upgrade', helm.sh/hook-weight: '-5'}}\nspec: {hard: {count/services: '%d', count/jobs.batch: '%d'}}\n", n, n)
	}
	service := func(name string) string {
		return "apiVersion: v1\nkind: Service\nmetadata: {name: " + name + "}\nspec: {selector: {a: b}, ports: [{port: 80}]}\n"
	}
	w.ok("install", "x", w.chart(quota(0)))
	w.eventually("the quota is counted", func() bool { return field(w.must("resourcequotas", "q"), "status.hard") != nil })
	second := w.chart(quota(1), service("web"), hookJob("then", "pre-upgrade", "before-hook-creation", false))
	w.says(w.ok("plan", "x", second), "stdout", "checked again after ResourceQuota/"+w.ns+"/q")
	w.ok("upgrade", "x", second)
	w.there("services", map[string]bool{"web": true})
	// It says less than it needs. Until the API server and the controller know the new quota, it admits anything.
	w.whenHookRuns(func() {
		w.eventually("the quota acts", func() bool {
			_, err := w.in("services").Create(w.bound(), kubetest.Object(t, service("more")), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err != nil && strings.Contains(err.Error(), "exceeded quota")
		})
	})
	w.says(w.exits(1, "upgrade", "x", w.chart(quota(1), service("web"), service("more"), hookJob("then", "pre-upgrade", "before-hook-creation", false))), "stderr", "only hooks ran", "exceeded quota")
	w.there("services", map[string]bool{"web": true, "more": false})
}

// definesProm returns a group, and what puts the definition of its kind Prom there, with some fields besides a version.
func (w *world) definesProm() (group string, put func(fields string) func()) {
	group = strings.ReplaceAll(w.unique(), "-", "") + ".example.com"
	crd := func(fields string) string {
		return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: proms.` + group + `}
spec:
  group: ` + group + `
  names: {kind: Prom, plural: proms}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {version: {type: string}` + fields + `}}}}}
`
	}
	put = func(fields string) func() {
		return func() {
			data := []byte(crd(fields))
			if _, err := w.in("customresourcedefinitions").Patch(w.bound(), "proms."+group, types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: "kubectl", Force: new(true)}); err != nil {
				w.Error(err)
			}
		}
	}
	w.Cleanup(func() {
		_ = w.in("customresourcedefinitions").Delete(w.bound(), "proms."+group, metav1.DeleteOptions{})
	})
	return group, put
}

// TestAnnotatedRecords fails if a run ends because another program annotates the records of the release meanwhile, as it does with all Secrets.
func TestAnnotatedRecords(t *testing.T) {
	w := newWorld(t)
	w.ok("install", "x", w.chart(configMap("a", "1")))
	isRecord := func(method, path string) bool {
		return method == http.MethodPost && strings.HasSuffix(path, "/secrets")
	}
	w.whenMade("the record of the second revision", isRecord, func() {
		w.patch("secrets", "sh.helm.release.v1.x.v1", "syncer", `{"metadata":{"annotations":{"seen":"today"},"labels":{"team":"x"}}}`)
	})
	w.ok("upgrade", "x", w.chart(configMap("a", "2")))
	w.statuses("x", "superseded", "deployed")
}

// twoVersions is the definition of a kind Prom with v1 and v2, or with some of them. The last one is stored.
func twoVersions(group, conversion string, versions ...string) string {
	crd := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: proms." + group + "}\nspec:\n  group: " + group +
		"\n  names: {kind: Prom, plural: proms}\n  scope: Namespaced\n  conversion: " + conversion + "\n  versions:\n"
	for i, version := range versions {
		crd += fmt.Sprintf("  - {name: %s, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n", version, i == len(versions)-1)
	}
	return crd
}

// TestHookMigratesStoredObjects fails if a definition is refused because of a version in which objects may be stored before the hook has run
// that stores them in another one.
func TestHookMigratesStoredObjects(t *testing.T) {
	w := newWorld(t)
	group, _ := w.definesProm()
	w.ok("install", "x", w.chart(twoVersions(group, "{strategy: None}", "v1")))
	w.ok("upgrade", "x", w.chart(twoVersions(group, "{strategy: None}", "v1", "v2")))
	last := twoVersions(group, "{strategy: None}", "v2")
	w.says(w.exits(3, "upgrade", "x", w.chart(last)), "stderr", `storedVersions`, `nothing was changed`)
	w.whenHookRuns(func() {
		w.patch("customresourcedefinitions", "proms."+group, "migration", `{"status":{"storedVersions":["v2"]}}`, "status")
	})
	w.ok("upgrade", "x", w.chart(last, hookJob("migrate", "pre-upgrade", "before-hook-creation", false)))
	if versions := field(w.must("customresourcedefinitions", "proms."+group), "spec.versions").([]any); len(versions) != 1 {
		t.Errorf("the definition has %d versions, want v2", len(versions))
	}
}

// TestHookMendsAConverter fails if a custom resource is refused, because its converter doesn't answer, before the hook has run that
// mends that.
func TestHookMendsAConverter(t *testing.T) {
	w := newWorld(t)
	group, _ := w.definesProm()
	definition := func(conversion string) {
		data := []byte(twoVersions(group, conversion, "v2", "v1"))
		if _, err := w.in("customresourcedefinitions").Patch(w.bound(), "proms."+group, types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: "operator", Force: new(true)}); err != nil {
			t.Error(err)
		}
	}
	live := func() (*unstructured.Unstructured, error) {
		v2 := schema.GroupVersionResource{Group: group, Version: "v2", Resource: "proms"}
		return w.cluster.Dynamic().Resource(v2).Namespace(w.ns).Get(w.bound(), "main", metav1.GetOptions{})
	}
	definition("{strategy: None}")
	w.eventually("the kind is served", func() bool {
		_, err := live()
		return apierrors.IsNotFound(err) && strings.Contains(err.Error(), "main")
	})
	chart := func(n, hook string) string {
		return w.chart("apiVersion: "+group+"/v2\nkind: Prom\nmetadata: {name: main}\nspec: {version: '"+n+"'}\n", configMap("a", n), hook)
	}
	w.ok("install", "x", chart("1", ""))
	definition("{strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: 'https://127.0.0.1:9/'}}}")
	w.eventually("nobody converts", func() bool { _, err := live(); return err != nil })
	w.whenHookRuns(func() {
		definition("{strategy: None}")
		w.eventually("the converter is mended", func() bool { _, err := live(); return err == nil })
	})
	w.ok("upgrade", "x", chart("2", hookJob("mend", "pre-upgrade", "before-hook-creation", false)))
	if obj, err := live(); err != nil || field(obj, "spec.version") != "2" {
		t.Errorf("the custom resource is %v, %v, want the chart's", obj, err)
	}
}

// TestGrownByOthersAndCannotShrink fails if no release is possible any more because others have changed a field for good that the chart
// still has as before. What the chart changes itself is refused.
func TestGrownByOthersAndCannotShrink(t *testing.T) {
	w := newWorld(t)
	group, put := w.definesProm()
	put(`, size: {type: integer, x-kubernetes-validations: [{rule: "self >= oldSelf", message: "can't shrink"}]}`)()
	w.eventually("the kind is served", func() bool {
		_, err := w.proms(group).List(w.bound(), metav1.ListOptions{})
		return err == nil
	})
	chart := func(version, size string) string {
		return w.chart("apiVersion: " + group + "/v1\nkind: Prom\nmetadata: {name: main}\nspec: {version: '" + version + "', size: " + size + "}\n")
	}
	w.ok("install", "x", chart("1", "3"))
	if _, err := w.proms(group).Patch(w.bound(), "main", types.MergePatchType, []byte(`{"spec":{"size":5}}`), metav1.PatchOptions{FieldManager: "autoresizer"}); err != nil {
		t.Fatal(err)
	}
	w.says(w.ok("upgrade", "x", chart("2", "3")), "stderr", `spec.size stays as autoresizer set it`)
	if obj := w.prom(group); field(obj, "spec.version") != "2" || field(obj, "spec.size") != int64(5) {
		t.Errorf("spec is %v, want version 2 and size 5", field(obj, "spec"))
	}
	w.says(w.exits(3, "upgrade", "x", chart("3", "2")), "stderr", `can't shrink`)
	w.ok("upgrade", "x", chart("3", "7"))
}

// TestHookMakesWayForARollback fails if a rollback is refused for somebody's object before its hook has deleted that, where Helm goes back.
func TestHookMakesWayForARollback(t *testing.T) {
	w := newWorld(t)
	hook := hookJob("clean", "pre-rollback", "before-hook-creation", false)
	w.ok("install", "x", w.chart(configMap("a", "1"), configMap("old", "1"), hook))
	w.ok("upgrade", "x", w.chart(configMap("a", "2"), hook))
	w.create("configmaps", "kubectl-create", configMap("old", "by hand"))
	w.says(w.exits(1, "rollback", "x", "1"), "stderr", `ConfigMap/`+w.ns+`/old.*cannot be imported`)
	if got := field(w.must("configmaps", "a"), "data.key"); got != "2" {
		t.Errorf("ConfigMap/a has key = %v, want 2: only hooks ran", got)
	}
	w.whenHookRuns(func() { w.remove("configmaps", "old", metav1.DeleteOptions{}) })
	w.ok("rollback", "x", "1")
	for name, want := range map[string]string{"a": "1", "old": "1"} {
		if got := field(w.must("configmaps", name), "data.key"); got != want {
			t.Errorf("ConfigMap/%s has key = %v, want %s", name, got, want)
		}
	}
}

// TestKindOfAHook fails if a chart is refused whose hook brings a kind, or if fields are dropped which the
// definition of a hook has.
func TestKindOfAHook(t *testing.T) {
	w := newWorld(t)
	group, put := w.definesProm()
	prom := func(spec string) string {
		return "apiVersion: " + group + "/v1\nkind: Prom\nmetadata: {name: main}\nspec: {" + spec + "}\n"
	}
	hook := hookJob("definitions", "pre-install,pre-upgrade", "before-hook-creation", false)
	first := w.chart(prom(`version: "1"`), configMap("a", "1"), hook)
	w.says(w.ok("plan", "x", first), "stdout", `Prom/`+w.ns+`/main`, `not verified: hooks run first`)
	w.whenHookRuns(func() { // it makes an object of the kind, too, which is the release's then
		put("")()
		theirs := kubetest.Object(t, prom(`version: "0"`))
		w.eventually("the kind is served", func() bool {
			_, err := w.proms(group).Create(w.bound(), theirs, metav1.CreateOptions{FieldManager: "hook"})
			return err == nil
		})
	})
	w.ok("install", "x", first)
	if got := field(w.prom(group), "spec.version"); got != "1" {
		t.Errorf("version = %v", got)
	}
	w.whenHookRuns(put(", retention: {type: string}"))
	w.ok("upgrade", "x", w.chart(prom(`version: "1", retention: 10d`), configMap("a", "1"), hook))
	if got := field(w.prom(group), "spec.retention"); got != "10d" {
		t.Errorf("retention = %v, want what the definition of the hook has", got)
	}
}

// TestPostHookOfAKindThatAProgramBrings fails if a chart is refused whose operator, when it runs, brings the kind of a hook that comes
// after it.
func TestPostHookOfAKindThatAProgramBrings(t *testing.T) {
	w := newWorld(t)
	group, put := w.definesProm()
	prom := "apiVersion: " + group + "/v1\nkind: Prom\nmetadata: {name: main, annotations: {helm.sh/hook: post-install}}\nspec: {version: '1'}\n"
	chart := w.chart(configMap("a", "1"), prom)
	w.says(w.ok("plan", "x", chart), "stdout", `Prom/`+w.ns+`/main`, `not verified: the objects come first`)
	w.proxied().arm(&fate{
		at: func(_ int, c call) bool {
			path, _, _ := strings.Cut(c.path, "?")
			return c.write() && strings.HasSuffix(path, "/configmaps/a")
		},
		when: after, do: func() {
			put("")()
			w.eventually("the kind is served", func() bool {
				_, err := w.proms(group).List(w.bound(), metav1.ListOptions{})
				return err == nil
			})
		},
	})
	w.ok("install", "x", chart)
	if got := field(w.prom(group), "spec.version"); got != "1" {
		t.Errorf("version = %v", got)
	}
}

func (w *world) proms(group string) dynamic.ResourceInterface {
	return w.cluster.Dynamic().Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "proms"}).Namespace(w.ns)
}

func (w *world) prom(group string) *unstructured.Unstructured {
	w.Helper()
	obj, err := w.proms(group).Get(w.Context(), "main", metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return obj
}

// TestNamespaceOfAHook fails if a chart is refused whose hook makes a namespace of its objects.
func TestNamespaceOfAHook(t *testing.T) {
	w := newWorld(t)
	other := w.ns + "-b"
	space := "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + other + "\n  annotations: {helm.sh/hook: pre-install, helm.sh/hook-delete-policy: before-hook-creation}\n"
	inside := replaceOnce(configMap("b", "1"), "name: b", "name: b\n  namespace: "+other)
	chart := w.chart(space, configMap("a", "1"), inside)
	t.Cleanup(func() { _ = w.in("namespaces").Delete(w.bound(), other, metav1.DeleteOptions{}) })
	w.says(w.ok("plan", "x", chart), "stdout", `not verified`)
	w.ok("install", "x", chart)
	w.within(other).must("configmaps", "b")
}

// TestLooksAgainAfterAJob fails if what a Job of an earlier wave has deleted, changed or scaled stays so.
func TestLooksAgainAfterAJob(t *testing.T) {
	w := newWorld(t)
	later := func(manifest string) string {
		return replaceOnce(manifest, "metadata:\n", "metadata:\n  annotations: {deployer.io/weight: \"5\"}\n")
	}
	chart := func(n string) string {
		work := job("work"+n, `deployer.io/weight: "1"`, `[{"phase":"Succeeded","state":{"terminated":{"exitCode":0,"reason":"Completed"}}}]`, "r/x:1")
		return w.chart(work, later(configMap("late", "1")), later(configMap("away", "1")), later(deployment("web", "web", "  replicas: 1\n")))
	}
	w.ok("install", "x", chart("1"))
	w.whenJobRuns("work2", func() {
		w.patch("configmaps", "late", "kubectl-patch", `{"data":{"key":"job"}}`)
		w.remove("configmaps", "away", metav1.DeleteOptions{})
		w.scale("web", "0")
	})
	w.ok("upgrade", "x", chart("2"))
	if got := field(w.must("configmaps", "late"), "data.key"); got != "1" {
		t.Errorf("ConfigMap/late has key = %v, want the chart's", got)
	}
	w.there("configmaps", map[string]bool{"away": true})
	if got := field(w.must("deployments", "web"), "spec.replicas"); got != int64(1) {
		t.Errorf("Deployment/web has %v replicas, want the chart's", got)
	}
}

// TestWhatPostHooksDeleteIsGone: what a post-hook deletes or changes it does on purpose, so the run ends well, as with Helm, and the
// next one applies the chart again.
func TestWhatPostHooksDeleteIsGone(t *testing.T) {
	w := newWorld(t)
	hook := hookJob("tidy", "post-upgrade", "before-hook-creation", false)
	chart := func(value string) string {
		return w.chart(configMap("a", value), configMap("once", "1"), configMap("tls", "1"), hook)
	}
	w.ok("install", "x", chart("1"))
	w.whenHookRuns(func() {
		w.remove("configmaps", "once", metav1.DeleteOptions{})
		w.patch("configmaps", "tls", "hook", `{"data":{"key":"hook"}}`)
	})
	w.ok("upgrade", "x", chart("2"))
	w.there("configmaps", map[string]bool{"once": false})
	w.says(w.ok("plan", "x", chart("2")), "stdout", `ConfigMap/\S+/once\s+create`, `ConfigMap/\S+/tls\s+update`)
	w.ok("upgrade", "x", chart("2"), "--no-hooks")
	w.there("configmaps", map[string]bool{"once": true})
	if got := field(w.must("configmaps", "tls"), "data.key"); got != "1" {
		t.Errorf("ConfigMap/tls has key = %v, want the chart's", got)
	}
}
