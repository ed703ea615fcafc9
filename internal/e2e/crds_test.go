package e2e

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/internal/kubetest"
)

// widgetCRD is a definition of a kind of its own for each test.
func widgetCRD(name string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.%[1]s.deployer.io
spec:
  group: %[1]s.deployer.io
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                size: {type: integer}
`, name)
}

func widget(name string) string {
	return fmt.Sprintf("apiVersion: %s.deployer.io/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 1}\n", name)
}

// TestDefinitionsAndObjects: definitions in crds/ and in templates
// together with objects of these kinds, in one release.
func TestDefinitionsAndObjects(t *testing.T) {
	w := newWorld(t)
	inDir, inTemplates := w.unique()+"d", w.unique()+"t"
	for _, name := range []string{inDir, inTemplates} {
		w.dropCRD("widgets." + name + ".deployer.io")
	}
	chart := w.chartOf(map[string]string{
		"crds/widgets.yaml":      widgetCRD(inDir),
		"templates/crd.yaml":     widgetCRD(inTemplates),
		"templates/widgets.yaml": widget(inDir) + "---\n" + widget(inTemplates),
	})
	w.ok("plan", "x", chart)
	if w.get("customresourcedefinitions", "widgets."+inDir+".deployer.io") != nil {
		t.Error("the plan has made a definition")
	}
	w.ok("install", "x", chart)
	for _, group := range []string{inDir, inTemplates} {
		gvr := schema.GroupVersionResource{Group: group + ".deployer.io", Version: "v1", Resource: "widgets"}
		if _, err := w.cluster.Dynamic().Resource(gvr).Namespace(w.ns).Get(t.Context(), "w", metav1.GetOptions{}); err != nil {
			t.Errorf("the object of %s: %v", group, err)
		}
	}
	mark := w.mark()
	w.ok("upgrade", "x", chart)
	if writes := w.writes(mark); len(writes) > 0 {
		t.Errorf("an upgrade without changes has written: %v", writes)
	}
	w.says(w.ok("uninstall", "x"), "stderr", `the definitions of crds/ stay, as do the objects of their kinds: widgets\.`+inDir)
	if w.get("customresourcedefinitions", "widgets."+inDir+".deployer.io") == nil {
		t.Error("what is in crds/ has to stay")
	}
	w.nothingLeft()
}

// dropCRD removes a definition with the test.
func (w *world) dropCRD(name string) {
	definitions := w.cluster.Dynamic().Resource(resource(w.T, "customresourcedefinitions"))
	w.Cleanup(func() {
		err := definitions.Delete(context.WithoutCancel(w.Context()), name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			w.Logf("removing CustomResourceDefinition/%s: %v", name, err)
		}
	})
}

// gadgetCRD is a definition with versions, the last of which is stored.
func gadgetCRD(name string, versions ...string) string {
	text := fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gadgets.%[1]s.deployer.io
spec:
  group: %[1]s.deployer.io
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets, singular: gadget}
  versions:
`, name)
	for i, version := range versions {
		text += fmt.Sprintf("    - {name: %s, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n",
			version, i == len(versions)-1)
	}
	return text
}

// A version that objects may be stored in doesn't disappear from a definition:
// neither from crds/ nor from templates, nor by going back. Nothing is touched.
func TestStoredVersionsStay(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"crds/gadget.yaml", "templates/gadget.yaml"} {
		t.Run(where[:4], func(t *testing.T) {
			w := newWorld(t)
			name := w.unique()
			definition := "gadgets." + name + ".deployer.io"
			w.dropCRD(definition)
			chart := func(version string, versions ...string) string {
				return w.chartOf(map[string]string{
					where:                gadgetCRD(name, versions...),
					"templates/one.yaml": fmt.Sprintf("apiVersion: %s.deployer.io/%s\nkind: Gadget\nmetadata: {name: one}\nspec: {size: %d}\n", name, version, len(versions)),
				})
			}
			w.ok("install", "x", chart("v1alpha1", "v1alpha1"))
			w.ok("upgrade", "x", chart("v1", "v1alpha1", "v1"))
			mark := w.mark()
			refused := w.exits(3, "upgrade", "x", chart("v1", "v1"), "--crds", "upgrade")
			w.says(refused, "stderr", "CustomResourceDefinition/"+definition, `"v1alpha1": (missing from|must appear in) spec.versions`,
				"keep the version in the definition")
			w.exits(3, "plan", "x", chart("v1", "v1"), "--crds", "upgrade")
			if writes := w.writes(mark); len(writes) > 0 {
				t.Errorf("written: %v", writes)
			}
			if where[:4] == "temp" { // what has more can stay, and everything else goes back
				w.says(w.ok("rollback", "x", "1"), "stderr", "CustomResourceDefinition/"+definition+": its definition stays as it is")
				if writes := w.writes(mark); slices.ContainsFunc(writes, func(e kubetest.AuditEvent) bool { return e.Object.Name == definition }) {
					t.Errorf("the definition was written: %v", writes)
				}
				return
			}
			for _, policy := range []string{"skip", "create", "add"} { // as with Helm, which updates none, the rest is deployed
				r := w.ok("upgrade", "x", chart("v1", "v1"), "--crds", policy)
				if policy == "add" {
					w.says(r, "stderr", "CustomResourceDefinition/"+definition+": kept as it is: objects may be stored as v1alpha1")
				}
			}
			w.ok("rollback", "x", "1") // what is in crds/ isn't part of a revision
			if writes := w.writes(mark); slices.ContainsFunc(writes, func(e kubetest.AuditEvent) bool { return e.Object.Name == definition }) {
				t.Errorf("the definition was written: %v", writes)
			}
		})
	}
}

// sizedCRD is a Widget definition whose spec has some fields.
func sizedCRD(name string, fields ...string) string {
	text := widgetCRD(name)
	for _, field := range fields {
		text += "                " + field + ": {type: string}\n"
	}
	return text
}

// fieldsOf are the fields of a Widget's spec that its definition has.
func (w *world) fieldsOf(name string) []string {
	w.Helper()
	versions, _, _ := unstructured.NestedSlice(w.must("customresourcedefinitions", "widgets."+name+".deployer.io").Object, "spec", "versions")
	properties, _, _ := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "properties")
	return slices.Sorted(maps.Keys(properties))
}

func (w *world) wantFields(name string, want ...string) {
	w.Helper()
	if got := w.fieldsOf(name); !slices.Equal(got, want) {
		w.Errorf("the definition has %v, want %v", got, want)
	}
}

// A chart's older definition takes no fields from the objects of somebody's newer
// one, unless that is asked for; what a release has brought itself goes with it,
// also from a subchart, and also after it was installed by Helm.
func TestDefinitionsOnlyAdd(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"deployer", "helm"} {
		t.Run(by, func(t *testing.T) {
			w := newWorld(t)
			name := w.unique()
			definition := "widgets." + name + ".deployer.io"
			w.dropCRD(definition)
			chart := func(fields ...string) string {
				return w.chartOf(map[string]string{"crds/widgets.yaml": sizedCRD(name, fields...), "templates/a.yaml": configMap("a", strings.Join(fields, "-"))})
			}
			if by == "helm" {
				w.helm("install", "x", chart("own"))
			} else {
				w.ok("install", "x", chart("own"))
			}
			w.ok("upgrade", "x", chart())
			w.wantFields(name, "size")
			w.ok("upgrade", "x", chart("own"))

			other := w.beside()
			other.ok("install", "y", chart("own", "theirs"))
			w.wantFields(name, "own", "size", "theirs")
			plan := w.ok("plan", "x", chart("own", "more"))
			w.says(plan, "stdout", "CustomResourceDefinition/"+definition+" +keep: ", "kept as it is.*v1 spec.theirs.*to replace it anyway: --crds upgrade")
			w.says(w.ok("upgrade", "x", chart("own", "more")), "stderr", "kept as it is.*v1 spec.theirs")
			w.wantFields(name, "own", "size", "theirs")
			other.ok("upgrade", "y", chart("own", "theirs", "more"))
			w.ok("upgrade", "x", chart("own", "theirs"), "--crds", "add")
			w.wantFields(name, "more", "own", "size", "theirs")
			w.ok("upgrade", "x", chart("own"), "--crds", "create")
			w.ok("rollback", "x")
			w.wantFields(name, "more", "own", "size", "theirs")
			other.ok("upgrade", "y", chart("own", "theirs"))
			w.wantFields(name, "own", "size", "theirs")
			w.ok("upgrade", "x", chart("own"), "--crds", "upgrade")
			w.wantFields(name, "own", "size")
			file := filepath.Join(t.TempDir(), "plan")
			w.ok("plan", "x", chart("own", "saved"), "--out", file)
			w.ok("apply", file)
			w.wantFields(name, "own", "saved", "size")
		})
	}
}

// One subchart under two aliases is a very common form, and brings its crds/
// twice. Of two definitions that differ the first counts, as with Helm.
func TestDefinitionsOfOneSubchartTwice(t *testing.T) {
	w := newWorld(t)
	name := w.unique()
	w.dropCRD("widgets." + name + ".deployer.io")
	chart := func(other ...string) string {
		return w.chartOf(map[string]string{
			"Chart.yaml":                   "apiVersion: v2\nname: c\nversion: 1.0.0\ndependencies:\n- {name: s, version: 1.0.0, alias: one}\n- {name: s, version: 1.0.0, alias: two}\n- {name: r, version: 1.0.0}\n",
			"charts/s/Chart.yaml":          "apiVersion: v2\nname: s\nversion: 1.0.0\n",
			"charts/s/crds/widgets.yaml":   sizedCRD(name, "own"),
			"charts/s/templates/a.yaml":    configMap("{{ .Chart.Name }}", "1"),
			"charts/r/Chart.yaml":          "apiVersion: v2\nname: r\nversion: 1.0.0\n",
			"charts/r/crds/widgets.yaml":   sizedCRD(name, other...),
			"templates/custom-object.yaml": widget(name),
		})
	}
	w.ok("install", "x", chart("own"))
	w.there("configmaps", map[string]bool{"one": true, "two": true})
	w.says(w.ok("upgrade", "x", chart("different")), "stderr", "CustomResourceDefinition/widgets.*the first one is used")
	w.wantFields(name, "own", "size")
}

// A file in crds/ that is no object, such as a kustomization, doesn't matter where crds/ is skipped, as with Helm.
func TestSkippedDefinitionsNeedNotBeReadable(t *testing.T) {
	w := newWorld(t)
	chart := func(n string) string {
		return w.chartOf(map[string]string{"crds/kustomization.yaml": "resources: [widgets.yaml]\n", "templates/a.yaml": configMap("{{ .Release.Name }}", n)})
	}
	w.helm("install", "theirs", chart("1"), "--skip-crds")
	for _, name := range []string{"theirs", "x"} {
		w.ok("upgrade", "--install", name, chart("2"), "--skip-crds")
		w.ok("upgrade", name, chart("3"), "--crds", "skip")
		w.ok("plan", name, "--drift")
		w.ok("plan", "--rollback", name)
		w.ok("rollback", name)
		w.ok("uninstall", name)
	}
}
