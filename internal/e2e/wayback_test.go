package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/internal/kubetest"
)

// lostAndFound is what may have become of an object of revision 1, before
// revision 2 adopts it and fails.
var lostAndFound = map[string]func(w *world){
	"another release's": func(w *world) {
		w.ok("install", "other", w.chart(configMap("cm", "theirs")), "--take-ownership-from", w.ns+"/x")
	},
}

// TestWayBackGivesBackWhatTheTargetHas has an object of revision 1 that has become
// somebody else's. Revision 2 adopts it, or was about to, and fails: the way back
// to revision 1 gives it back as it was before revision 2, and doesn't make it what
// revision 1 says.
func TestWayBackGivesBackWhatTheTargetHas(t *testing.T) {
	t.Parallel()
	const before, after = "pre-upgrade", "post-upgrade"
	for become, becomes := range lostAndFound {
		for _, value := range []string{"first", "ours"} { // as in revision 1, or not
			for _, hook := range []string{before, after} {
				for _, atomic := range []bool{true, false} {
					if hook == before && !atomic {
						continue // a rollback is refused then, as the object isn't the release's
					}
					name := strings.Join([]string{become, value, hook, map[bool]string{true: "--atomic", false: "rollback"}[atomic]}, " ")
					t.Run(name, func(t *testing.T) {
						w := newWorld(t)
						w.ok("install", "x", w.chart(configMap("cm", "first"), configMap("own", "1")))
						becomes(w)
						was := w.must("configmaps", "cm")
						w.wayBack(hook, value, atomic)
						is := w.must("configmaps", "cm")
						w.sameJSONValue("ConfigMap/cm", substance(was), substance(is))
						if got, want := managers(is), managers(was); got != want {
							t.Errorf("fields of ConfigMap/cm belong to %s, want %s", got, want)
						}
						w.there("configmaps", map[string]bool{"own": true, "new": false})
						w.statuses("x", "superseded", "failed", "deployed")
						// What isn't the release's it doesn't take later, either.
						w.exits(3, "upgrade", "x", w.chart(configMap("cm", "ours")))
						w.ok("uninstall", "x")
						w.sameJSONValue("ConfigMap/cm", substance(was), substance(w.must("configmaps", "cm")))
					})
				}
			}
		}
	}
}

// wayBack lets revision 2 adopt ConfigMap/cm and fail at a hook, and goes back.
func (w *world) wayBack(hook, value string, atomic bool) {
	w.Helper()
	chart := w.chart(configMap("cm", value), configMap("own", "2"), configMap("new", "1"), hookJob("fails", hook, "hook-failed", true))
	args := []string{"upgrade", "x", chart, "--take-ownership", "--take-ownership-from", w.ns + "/other"}
	if !atomic {
		w.exits(1, args...)
		w.says(w.ok("rollback", "x", "1"), "stderr", `ConfigMap/`+w.ns+`/cm.*given back to `)
		return
	}
	r := w.exits(6, append(args, "--atomic")...)
	if hook == "pre-upgrade" {
		w.says(r, "stderr", `ConfigMap/`+w.ns+`/cm.*stays as it is`)
	} else {
		w.says(r, "stderr", `ConfigMap/`+w.ns+`/cm.*given back to `)
	}
}

// managers are the owners of an object's fields, with what they own.
func managers(obj *unstructured.Unstructured) string {
	var out []string
	for _, e := range obj.GetManagedFields() {
		out = append(out, fmt.Sprintf("%s (%s) %s", e.Manager, e.Operation, e.FieldsV1.GetRawString()))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// TestRollbackToARevisionThatAdopted has a rollback that asks for what a failed
// revision has adopted: it becomes the release's.
func TestRollbackToARevisionThatAdopted(t *testing.T) {
	w := newWorld(t)
	w.ok("install", "x", w.chart(configMap("own", "1")))
	w.create("configmaps", "kubectl-create", configMap("cm", "theirs"))
	w.exits(1, "upgrade", "x", w.chart(configMap("cm", "ours"), hookJob("fails", "post-upgrade", "hook-failed", true)), "--take-ownership")
	w.ok("rollback", "x", "2")
	w.ok("uninstall", "x")
	w.there("configmaps", map[string]bool{"cm": false, "own": false})
}

// TestUndoLeavesDefinitions: what a failed run has made of definitions in
// crds/ stays when it is undone, and is told: objects may use by then what has come,
// and taking it away again would cost their data.
func TestUndoLeavesDefinitions(t *testing.T) {
	t.Parallel()
	chart := func(w *world, name string, definition string) string {
		return w.chartOf(map[string]string{
			"crds/widgets.yaml": definition, "templates/a.yaml": configMap("a", "1"), "templates/w.yaml": widget(name), "templates/fails.yaml": fails(),
		})
	}
	t.Run("made", func(t *testing.T) {
		w := newWorld(t)
		name := w.unique()
		definition := "widgets." + name + ".deployer.io"
		w.dropCRD(definition)
		r := w.exits(6, "install", "x", chart(w, name, widgetCRD(name)), "--atomic")
		w.says(r, "stderr", "CustomResourceDefinition/"+definition+": stays as the failed run left it")
		w.wantFields(name, "size")
		w.there("configmaps", map[string]bool{"a": false})
		w.statuses("x")
	})
	t.Run("added", func(t *testing.T) {
		w := newWorld(t)
		name := w.unique()
		definition := "widgets." + name + ".deployer.io"
		w.dropCRD(definition)
		w.ok("install", "x", w.chartOf(map[string]string{"crds/widgets.yaml": widgetCRD(name), "templates/a.yaml": configMap("a", "0")}))
		r := w.exits(6, "upgrade", "x", chart(w, name, sizedCRD(name, "more")), "--atomic")
		w.says(r, "stderr", "CustomResourceDefinition/"+definition+": stays as the failed run left it")
		w.wantFields(name, "more", "size")
		// A run that had nothing to do with definitions tells nothing of them.
		r = w.exits(6, "upgrade", "x", chart(w, name, sizedCRD(name, "more")), "--atomic")
		if strings.Contains(r.err, "stays as the failed run") {
			t.Errorf("it tells of what it didn't do:\n%s", r)
		}
	})
	t.Run("taken away", func(t *testing.T) {
		w := newWorld(t)
		name := w.unique()
		definition := "widgets." + name + ".deployer.io"
		w.dropCRD(definition)
		theirs := w.create("customresourcedefinitions", "kubectl-create", sizedCRD(name, "theirs"))
		widgets := w.cluster.Dynamic().Resource(widgetsOf(name)).Namespace(w.ns)
		w.eventually("a widget can be made", func() bool {
			_, err := widgets.Create(w.Context(), kubetest.Object(t, strings.NewReplacer("name: w", "name: stored", "size: 1", "theirs: kept").Replace(widget(name))), metav1.CreateOptions{})
			return err == nil
		})
		r := w.exits(6, "install", "x", chart(w, name, sizedCRD(name, "ours")), "--atomic", "--crds", "upgrade")
		w.says(r, "stderr", "CustomResourceDefinition/"+definition+": stays as the failed run left it.*removed parts are not restored: v1 spec.theirs ")
		w.wantFields(name, "ours", "size")
		// Put back, what objects had is there again, as nobody has written them.
		again := kubetest.Object(t, sizedCRD(name, "ours", "theirs"))
		again.SetResourceVersion(w.must("customresourcedefinitions", definition).GetResourceVersion())
		if _, err := w.in("customresourcedefinitions").Update(w.Context(), again, metav1.UpdateOptions{FieldManager: "kubectl-replace"}); err != nil {
			t.Fatal(err)
		}
		w.eventually("the widget has its field again", func() bool {
			got, err := widgets.Get(w.Context(), "stored", metav1.GetOptions{})
			return err == nil && field(got, "spec.theirs") == "kept"
		})
		if is := w.must("customresourcedefinitions", definition); is.GetUID() != theirs.GetUID() {
			t.Error("the definition was deleted and made anew")
		}
	})
}
