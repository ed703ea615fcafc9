package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/internal/kubetest"
)

// strangers are objects that no release made, one of each kind whose loss costs
// most, and the object of a healthy release, with charts that want all of them.
type strangers struct {
	*world
	group string // first label of the group of the kind that the definition makes
	guest string // a namespace with something in it
	was   map[string]map[string]any
}

// newStrangers makes the objects, and the release "other" with one more.
func newStrangers(w *world) *strangers {
	w.Helper()
	s := &strangers{world: w, group: w.unique(), guest: w.ns + "-guest"}
	w.create("configmaps", "kubectl-create", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm, labels: {team: red}}\ndata: {key: theirs, extra: '1'}\n")
	w.storageClass(s.group)
	w.create("persistentvolumeclaims", "kubectl-create", claim(s.group, ""))
	w.create("namespaces", "kubectl-create", "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+s.guest+", labels: {team: red}}\n")
	w.Cleanup(func() { _ = w.in("namespaces").Delete(w.bound(), s.guest, metav1.DeleteOptions{}) })
	w.within(s.guest).create("configmaps", "kubectl-create", configMap("content", "theirs"))
	w.dropCRD(s.definition())
	w.create("customresourcedefinitions", "kubectl-create", widgetCRD(s.group))
	w.eventually("a widget can be made", func() bool {
		_, err := w.cluster.Dynamic().Resource(widgetsOf(s.group)).Namespace(w.ns).Create(w.Context(), kubetest.Object(w.T, widget(s.group)), metav1.CreateOptions{})
		return err == nil
	})
	w.ok("install", "other", s.chartOfOther())
	s.was = s.content()
	return s
}

func (s *strangers) definition() string { return "widgets." + s.group + ".deployer.io" }

// claim is a PersistentVolumeClaim.
func claim(class, labels string) string {
	return "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: claim, labels: {" + labels + "}}\n" +
		"spec: {accessModes: [ReadWriteOnce], storageClassName: " + class + ", resources: {requests: {storage: 1Gi}}}\n"
}

func (s *strangers) chartOfOther() string {
	return s.chart("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared, labels: {only: other}}\ndata: {key: of other, extra: '1'}\n", configMap("alone", "1"))
}

// storageClass makes a class of volumes that nobody waits for.
func (w *world) storageClass(name string) {
	w.Helper()
	classes := w.cluster.Client().StorageV1().StorageClasses()
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "example.com/none", VolumeBindingMode: &mode}
	if _, err := classes.Create(w.Context(), class, metav1.CreateOptions{}); err != nil {
		w.Fatalf("creating StorageClass/%s: %v", name, err)
	}
	w.Cleanup(func() { _ = classes.Delete(w.bound(), name, metav1.DeleteOptions{}) })
}

// wanting is a chart that has all of the strangers, changed, objects of its own,
// and more templates.
func (s *strangers) wanting(more ...string) string {
	return s.chart(append([]string{
		configMap("own", "1"),
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm, labels: {team: blue, new: here}}\ndata: {key: ours, added: '2'}\n",
		claim(s.group, "app: ours"),
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: " + s.guest + ", labels: {team: blue}}\n",
		strings.Replace(widgetCRD(s.group), "size: {type: integer}", "size: {type: integer}\n                colour: {type: string}", 1),
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\ndata: {key: taken, more: '1'}\n",
	}, more...)...)
}

// fails is a hook that fails when all else is done.
func fails() string {
	return hookJob("fails", "post-install,post-upgrade", "before-hook-creation,hook-failed", true)
}

func widgetsOf(group string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group + ".deployer.io", Version: "v1", Resource: "widgets"}
}

// taking are the flags with which a release may have all of the strangers.
func (s *strangers) taking(args ...string) []string {
	return append(args, "--take-ownership", "--take-ownership-from", s.ns+"/other")
}

// content is what the strangers are, by "kind/name".
func (s *strangers) content() map[string]map[string]any {
	s.Helper()
	out := map[string]map[string]any{}
	add := func(w *world, kind, name string) {
		out[kind+"/"+name] = substance(w.get(kind, name))
	}
	add(s.world, "configmaps", "cm")
	add(s.world, "configmaps", "shared")
	add(s.world, "persistentvolumeclaims", "claim")
	add(s.world, "namespaces", s.guest)
	add(s.within(s.guest), "configmaps", "content")
	add(s.world, "customresourcedefinitions", s.definition())
	widgets, err := s.cluster.Dynamic().Resource(widgetsOf(s.group)).Namespace(s.ns).List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatalf("listing widgets: %v", err)
	}
	for i := range widgets.Items {
		out["widgets/"+widgets.Items[i].GetName()] = substance(&widgets.Items[i])
	}
	return out
}

// substance is an object without its bookkeeping; nil when it isn't there.
func substance(obj *unstructured.Unstructured) map[string]any {
	if obj == nil {
		return nil
	}
	out := obj.DeepCopy()
	for _, name := range []string{"managedFields", "resourceVersion", "generation"} {
		unstructured.RemoveNestedField(out.Object, "metadata", name)
	}
	delete(out.Object, "status")
	return out.Object
}

// asBefore checks that the strangers are what they were, that nothing of them is
// ours, and that the release "other" has nothing to do.
// The values of objects in but, such as "persistentvolumeclaims/claim", don't count.
func (s *strangers) asBefore(when string, but ...string) {
	s.Helper()
	now := s.content()
	for _, key := range slices.Sorted(maps.Keys(s.was)) {
		if slices.Contains(but, key) {
			continue
		}
		s.sameJSONValue(when+": "+key, s.was[key], now[key])
	}
	for kind, name := range map[string]string{
		"configmaps": "cm", "persistentvolumeclaims": "claim", "namespaces": s.guest, "customresourcedefinitions": s.definition(),
	} {
		obj := s.get(kind, name)
		if obj == nil {
			continue // has been told
		}
		for _, e := range obj.GetManagedFields() {
			if e.Manager == "helm" {
				s.Errorf("%s: %s/%s has fields of ours: %s", when, kind, name, e.FieldsV1.GetRawString())
			}
		}
	}
	s.noChanges(s.ok("plan", "other", s.chartOfOther(), "-o", "json"))
}

// sameJSONValue checks that an object is what it was.
func (w *world) sameJSONValue(what string, was, is map[string]any) {
	w.Helper()
	if got, want := fmt.Sprint(is), fmt.Sprint(was); got != want {
		w.Errorf("%s has changed\nwas %s\nis  %s", what, want, got)
	}
}

// TestUndoGivesBack has an install, and an upgrade, that adopt what others made,
// fail, and are undone: the others have it as before.
func TestUndoGivesBack(t *testing.T) {
	t.Parallel()
	for name, command := range map[string][]string{
		"install":           {"install"},
		"upgrade --install": {"upgrade", "--install"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStrangers(newWorld(t))
			r := s.exits(6, s.taking(append(command, "x", s.wanting(fails()), "--atomic")...)...)
			s.asBefore("after the undo")
			s.there("configmaps", map[string]bool{"own": false})
			s.says(r, "stderr", `ConfigMap/`+s.ns+`/shared.*given back to release `+s.ns+`/other`, `Namespace/`+s.guest+`.*given back`)
			if strings.Contains(r.err, "not completely") {
				t.Errorf("it tells of what isn't given back, and nobody has changed anything:\n%s", r)
			}
			s.statuses("x")
		})
	}
	t.Run("upgrade", func(t *testing.T) {
		s := newStrangers(newWorld(t))
		s.ok("install", "x", s.chart(configMap("own", "0")))
		s.exits(6, s.taking("upgrade", "x", s.wanting(configMap("new", "1"), fails()), "--atomic")...)
		s.asBefore("after the way back")
		s.there("configmaps", map[string]bool{"own": true, "new": false})
		s.statuses("x", "superseded", "failed", "deployed")
	})
}

// TestFailedAdoptionIsGivenBack has a failed upgrade that isn't undone: the next
// run gives back what it had adopted, never deletes it.
func TestFailedAdoptionIsGivenBack(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(*strangers) []string{
		"upgrade":   func(s *strangers) []string { return []string{"upgrade", "x", s.chart(configMap("own", "2"))} },
		"rollback":  func(*strangers) []string { return []string{"rollback", "x", "1"} },
		"uninstall": func(*strangers) []string { return []string{"uninstall", "x"} },
		"uninstall --keep-history": func(*strangers) []string {
			return []string{"uninstall", "x", "--keep-history"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStrangers(newWorld(t))
			s.ok("install", "x", s.chart(configMap("own", "0")))
			s.exits(1, s.taking("upgrade", "x", s.wanting(configMap("new", "1"), fails()))...)
			s.ok(next(s)...)
			s.asBefore("after the next run")
			s.there("configmaps", map[string]bool{"new": false, "own": !strings.HasPrefix(name, "uninstall")})
		})
	}
}

// TestFailedInstallIsGivenBack has a first install that adopts and fails, and is
// removed by hand.
func TestFailedInstallIsGivenBack(t *testing.T) {
	s := newStrangers(newWorld(t))
	s.exits(1, s.taking("install", "x", s.wanting(fails()))...)
	s.ok("uninstall", "x")
	s.asBefore("after the uninstall")
	s.there("configmaps", map[string]bool{"own": false})
}

// TestAdoptedForGood: an object adopted in a revision that succeeds is the
// release's: what fails later doesn't give it back, and an uninstall deletes it.
func TestAdoptedForGood(t *testing.T) {
	s := newStrangers(newWorld(t))
	s.exits(1, s.taking("install", "x", s.wanting(fails()))...)
	s.ok("upgrade", "--install", "x", s.wanting())
	s.exits(6, "upgrade", "x", s.wanting(fails()), "--atomic")
	if got := field(s.must("configmaps", "cm"), "data.key"); got != "ours" {
		t.Errorf("ConfigMap/cm has key = %v, want ours", got)
	}
	s.ok("uninstall", "x")
	s.there("configmaps", map[string]bool{"cm": false, "shared": false})
	s.eventually("the claim is gone", func() bool { return s.get("persistentvolumeclaims", "claim") == nil })
	s.eventually("the definition is gone", func() bool { return s.get("customresourcedefinitions", s.definition()) == nil })
}

// TestStampedByHandIsGivenBack is the way to let Helm adopt an object: to write
// its annotations on it beforehand. The object was there all the same.
func TestStampedByHandIsGivenBack(t *testing.T) {
	w := newWorld(t)
	w.create("configmaps", "kubectl-create", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm, labels: {app.kubernetes.io/managed-by: Helm},"+
		" annotations: {meta.helm.sh/release-name: x, meta.helm.sh/release-namespace: "+w.ns+"}}\ndata: {key: theirs}\n")
	was := substance(w.get("configmaps", "cm"))
	w.exits(6, "install", "x", w.chart(configMap("cm", "ours"), fails()), "--atomic")
	w.sameJSONValue("ConfigMap/cm", was, substance(w.get("configmaps", "cm")))
}

// TestUndoKeepsProtectedKinds: what a failed run has made and others may
// use by now stays.
func TestUndoKeepsProtectedKinds(t *testing.T) {
	w := newWorld(t)
	name := w.unique()
	w.dropCRD("widgets." + name + ".deployer.io")
	w.storageClass(name)
	claim := claim(name, "")
	r := w.exits(6, "install", "x", w.chart(configMap("a", "1"), claim, widgetCRD(name), fails()), "--atomic")
	w.there("persistentvolumeclaims", map[string]bool{"claim": true})
	w.there("customresourcedefinitions", map[string]bool{"widgets." + name + ".deployer.io": true})
	w.there("configmaps", map[string]bool{"a": false})
	w.says(r, "stderr", `PersistentVolumeClaim/`+w.ns+`/claim`)

	// Another try has them, and an uninstall that somebody asks for deletes them.
	w.ok("install", "x", w.chart(configMap("a", "1"), claim, widgetCRD(name)))
	w.ok("uninstall", "x")
	w.eventually("the claim is gone", func() bool { return w.get("persistentvolumeclaims", "claim") == nil })
}

// TestChangedSinceStays: giving back leaves what others have changed
// since the adoption, and says so.
func TestChangedSinceStays(t *testing.T) {
	w := newWorld(t)
	w.create("configmaps", "kubectl-create", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\ndata: {key: theirs, other: '1'}\n")
	taking := []string{"upgrade", "--install", "x", w.chart("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\ndata: {key: ours, other: '2', added: '3'}\n", fails()), "--take-ownership"}
	w.exits(1, taking...)
	w.patch("configmaps", "cm", "kubectl-edit", `{"data":{"key":"changed","added":"kept"}}`)
	w.says(w.ok("upgrade", "--install", "x", w.chart(configMap("own", "1"))), "stderr", `data\.key has been changed since`)
	if got, want := fmt.Sprint(field(w.must("configmaps", "cm"), "data")), "map[added:kept key:changed other:1]"; got != want {
		t.Errorf("ConfigMap/cm has %s, want %s", got, want)
	}

	// What a second failed run overwrites of what others have set since the first.
	w.exits(1, taking...)
	w.patch("configmaps", "cm", "kubectl-edit", `{"data":{"key":"changed","added":"kept"}}`)
	w.exits(1, "upgrade", "--install", "x", w.chart("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\ndata: {other: '4', more: '5'}\n", fails()))
	w.ok("uninstall", "x")
	got := fmt.Sprint(field(w.must("configmaps", "cm"), "data"))
	if want := "map[added:kept key:changed other:1]"; got != want {
		t.Errorf("ConfigMap/cm has %s, want %s", got, want)
	}
}

// TestSecretGivenBack: a Secret has its values again and none is shown.
func TestSecretGivenBack(t *testing.T) {
	w := newWorld(t)
	secret := func(password string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: " + password + "}\n"
	}
	was := substance(w.create("secrets", "kubectl-create", secret("theirs-hunter2")))
	chart := w.chart(secret("ours-hunter3"), fails())
	failed := w.exits(1, "install", "x", chart, "--take-ownership")
	for _, r := range []result{failed, w.ok("plan", "--uninstall", "x"), w.ok("plan", "--uninstall", "x", "-o", "json"), w.ok("get", "all", "x"), w.ok("status", "x", "-o", "json"), w.ok("uninstall", "x", "--debug")} {
		if strings.Contains(r.out+r.err, "theirs-hunter2") || strings.Contains(r.out+r.err, "dGhlaXJzLWh1bnRlcjI") {
			t.Errorf("it shows a former value:\n%s", r)
		}
	}
	w.sameJSONValue("Secret/s", was, substance(w.get("secrets", "s")))
}

// TestMadeAnewIsKept has an object that somebody has deleted and made anew, with
// the annotations on it, after a failed run had adopted it.
func TestMadeAnewIsKept(t *testing.T) {
	w := newWorld(t)
	w.create("configmaps", "kubectl-create", configMap("cm", "theirs"))
	w.exits(1, "install", "x", w.chart(configMap("cm", "ours"), fails()), "--take-ownership")
	copied := w.must("configmaps", "cm")
	if err := w.in("configmaps").Delete(w.Context(), "cm", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	copied.SetUID("")
	copied.SetResourceVersion("")
	copied.SetManagedFields(nil)
	if _, err := w.in("configmaps").Create(w.Context(), copied, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r := w.ok("uninstall", "x")
	w.there("configmaps", map[string]bool{"cm": true})
	w.says(r, "stderr", "recreated by another client")
}

// TestHookDoesNotDeleteAdopted has an object that a failed run had adopted, and
// that the next chart has as a hook.
func TestHookDoesNotDeleteAdopted(t *testing.T) {
	w := newWorld(t)
	was := substance(w.create("configmaps", "kubectl-create", configMap("cm", "theirs")))
	w.exits(1, "install", "x", w.chart(configMap("cm", "ours"), fails()), "--take-ownership")
	hook := strings.Replace(configMap("cm", "hook"), "  name: cm", "  name: cm\n  annotations: {helm.sh/hook: pre-install}", 1)
	w.exits(3, "upgrade", "--install", "x", w.chart(hook, configMap("own", "1")))
	w.ok("uninstall", "x")
	w.sameJSONValue("ConfigMap/cm", was, substance(w.get("configmaps", "cm")))
}

// TestJobOfOthersIsNotRecreated: what would be deleted to be made anew is
// not, when it is somebody else's.
func TestJobOfOthersIsNotRecreated(t *testing.T) {
	w := newWorld(t)
	const ends = `[{"phase":"Succeeded","state":{"terminated":{"exitCode":0}}}]`
	was := w.create("jobs", "kubectl-create", job("work", "a: b", ends, "r/x:1"))
	w.exits(3, "install", "x", w.chart(job("work", "a: b", ends, "r/x:2")), "--take-ownership")
	if is := w.must("jobs", "work"); is.GetUID() != was.GetUID() {
		t.Error("Job/work was deleted and made anew")
	}
}

// TestHelmAfterFailedAdoption is Helm going on after a failed run that adopted:
// what Helm deploys is the release's, what it doesn't have is given back.
func TestHelmAfterFailedAdoption(t *testing.T) {
	w := newWorld(t)
	w.create("configmaps", "kubectl-create", configMap("taken", "theirs"))
	was := substance(w.create("configmaps", "kubectl-create", configMap("left", "theirs")))
	w.ok("install", "x", w.chart(configMap("own", "1")))
	w.exits(1, "upgrade", "x", w.chart(configMap("own", "1"), configMap("taken", "ours"), configMap("left", "ours"), fails()), "--take-ownership")
	w.helm("upgrade", "x", w.chart(configMap("own", "2"), configMap("taken", "helm")))
	w.ok("upgrade", "x", w.chart(configMap("own", "3")))
	w.there("configmaps", map[string]bool{"own": true, "taken": false})
	w.sameJSONValue("ConfigMap/left", was, substance(w.get("configmaps", "left")))
}
