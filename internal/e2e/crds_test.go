package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// TestDefinitionsAndObjects is S54 and S55: definitions in crds/ and in templates
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
	w.ok("uninstall", "x")
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
			refused := w.exits(3, "upgrade", "x", chart("v1", "v1"))
			w.says(refused, "stderr", "CustomResourceDefinition/"+definition, `"v1alpha1": missing from spec.versions`,
				"leave the version in the definition")
			w.exits(3, "plan", "x", chart("v1", "v1"))
			if where[:4] == "temp" {
				w.says(w.exits(3, "rollback", "x", "1"), "stderr", "missing from spec.versions")
			}
			if writes := w.writes(mark); len(writes) > 0 {
				t.Errorf("written: %v", writes)
			}
			if where[:4] == "temp" {
				return
			}
			w.ok("upgrade", "x", chart("v1", "v1"), "--crds", "skip")
			w.ok("upgrade", "x", chart("v1", "v1"), "--crds", "create")
			w.ok("rollback", "x", "1") // what is in crds/ isn't part of a revision
			if writes := w.writes(mark); slices.ContainsFunc(writes, func(e kubetest.AuditEvent) bool { return e.Object.Name == definition }) {
				t.Errorf("the definition was written: %v", writes)
			}
		})
	}
}
